import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;

/** Threads, native memory in direct buffers and deflaters, collection, and child processes in one JVM. */
public final class Work {
    private static byte[] deflate(byte[] data) {
        Deflater deflater = new Deflater(6);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (DeflaterOutputStream stream = new DeflaterOutputStream(out, deflater)) {
            stream.write(data);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } finally {
            deflater.end();
        }
        return out.toByteArray();
    }

    private static byte[] one(int n) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (int i = 0; i < 30; i++) {
            ByteBuffer direct = ByteBuffer.allocateDirect(4096 * (n % 60 + 1));
            while (direct.remaining() >= 8) {
                direct.putLong(n * 31L + i);
            }
            direct.flip();
            byte[] data = new byte[direct.remaining()];
            direct.get(data);
            digest.update(deflate(data));
        }
        return digest.digest();
    }

    public static void main(String[] arguments) throws Exception {
        MessageDigest all = MessageDigest.getInstance("SHA-256");
        var pool = Executors.newFixedThreadPool(16);
        List<Future<byte[]>> futures = new ArrayList<>();
        for (int n = 0; n < 400; n++) {
            int number = n;
            futures.add(pool.submit(() -> one(number)));
        }
        for (Future<byte[]> future : futures) {
            all.update(future.get());
        }
        pool.shutdown();
        System.out.println("pool " + HexFormat.of().formatHex(all.digest()));

        for (int round = 0; round < 20; round++) {
            Thread[] threads = new Thread[50];
            Arrays.setAll(threads, i -> new Thread(() -> deflate(new byte[10_000])));
            for (Thread thread : threads) {
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            System.gc();
        }
        Process child = new ProcessBuilder("sh", "-c", "echo from a child; exit 9").inheritIO().start();
        System.out.println("child " + child.waitFor());
        try {
            ByteBuffer.allocateDirect(Integer.MAX_VALUE);
        } catch (OutOfMemoryError e) {
            System.out.println("refused: " + e.getClass().getName());
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        System.exit(4);
    }
}
