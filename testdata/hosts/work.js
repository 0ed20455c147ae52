// Threads with heaps of their own, native buffers, child processes and sockets, all in one Node process.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { createHash, pbkdf2Sync } = require('crypto');
const { execFileSync, fork } = require('child_process');
const http = require('http');
const zlib = require('zlib');

function digest(n) {
  const hash = createHash('sha256');
  for (let i = 0; i < 40; i++) {
    const data = Buffer.alloc(1000 * (n % 50 + 1), `${n}-${i}`);
    hash.update(zlib.gunzipSync(zlib.gzipSync(data)));
    hash.update(zlib.brotliDecompressSync(zlib.brotliCompressSync(data, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 3 } })));
  }
  hash.update(pbkdf2Sync(`${n}`, 'salt', 2000, 32, 'sha512'));
  return hash.digest('hex');
}

async function main() {
  const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => new Promise((resolve, reject) => {
    new Worker(__filename, { workerData: n }).on('message', resolve).on('error', reject);
  })));
  console.log('workers', createHash('sha256').update(answers.join()).digest('hex'));

  const child = fork(__filename, ['child']);
  console.log('child says', await new Promise((resolve) => child.on('message', resolve)),
    await new Promise((resolve) => child.on('exit', (code, signal) => resolve(`${code} ${signal}`))));
  console.log('shell says', execFileSync('sh', ['-c', 'echo one; exit 0']).toString().trim());

  const server = http.createServer((request, response) => response.end(digest(Number(request.url.slice(1))))).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.on('listening', resolve));
  const { port } = server.address();
  const bodies = await Promise.all(Array.from({ length: 60 }, async (_, n) => (await fetch(`http://127.0.0.1:${port}/${n % 9}`)).text()));
  console.log('served', createHash('sha256').update(bodies.join()).digest('hex'));
  server.close();
  server.closeAllConnections();
  process.exitCode = 0;
}

if (!isMainThread) {
  parentPort.postMessage(digest(workerData));
} else if (process.argv[2] === 'child') {
  process.send(digest(99), () => process.exit(5));
} else {
  main();
}
