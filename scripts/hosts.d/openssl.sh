# shellcheck shell=bash disable=SC2034,SC2154
what='openssl and ssh-keygen: keys, signatures, encryption, TLS'
quick=yes
needs=(openssl openssl ssh-keygen openssh-client)
binaries=(openssl ssh-keygen)

workload() {
    local key handshakes=300
    if [ "$quick_run" = yes ]; then handshakes=60; fi
    seq 400000 >data
    "${guest[@]}" openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem 2>/dev/null || return
    "${guest[@]}" openssl dgst -sha256 -sign rsa.pem -out data.sig data || return
    "${guest[@]}" openssl pkey -in rsa.pem -pubout -out rsa.pub || return
    "${guest[@]}" openssl dgst -sha256 -verify rsa.pub -signature data.sig data
    "${guest[@]}" openssl enc -aes-256-ctr -pbkdf2 -iter 20000 -S 0102030405060708 -pass pass:word -in data -out data.enc || return
    "${guest[@]}" openssl enc -d -aes-256-ctr -pbkdf2 -iter 20000 -S 0102030405060708 -pass pass:word -in data.enc | md5sum
    md5sum <data.enc
    for key in ed25519 ecdsa rsa; do
        "${guest[@]}" ssh-keygen -q -t "$key" -N '' -C test -f "id_$key" || return
        "${guest[@]}" ssh-keygen -q -Y sign -f "id_$key" -n file data 2>/dev/null || return
        echo "test $(cat "id_$key.pub")" >signers
        "${guest[@]}" ssh-keygen -Y verify -f signers -I test -n file -s data.sig <data | sed 's/ key .*//'
        "${guest[@]}" ssh-keygen -lf "id_$key" | cut -d' ' -f1,3-
        rm -f data.sig
    done
    # A TLS server under the agent, a client that is not, some handshakes.
    "${guest[@]}" openssl req -x509 -key rsa.pem -subj /CN=localhost -days 1 -out cert.pem 2>/dev/null || return
    echo served >page
    "${guest[@]}" openssl s_server -quiet -WWW -accept 127.0.0.1:0 -key rsa.pem -cert cert.pem -naccept "$handshakes" >server.log 2>&1 &
    server=$!
    trap 'kill "$server" 2>/dev/null' EXIT
    port=$(listening_port "$server") || return
    for _ in $(seq "$handshakes"); do curl -fsk --http1.0 "https://127.0.0.1:$port/page"; done | sort | uniq -c
    wait "$server"
    echo "server $?"
}
