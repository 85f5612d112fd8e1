#!/bin/sh
# Makes the certificates of the tests anew. They protect nothing: their keys are public.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# Two authorities: ours, and one that nobody trusts.
for name in authority stranger; do
  openssl ecparam -name prime256v1 -genkey -noout -out "$work/$name.key"
  openssl req -x509 -new -key "$work/$name.key" -sha256 -days 36500 -out "$name.pem" \
    -subj "/O=Impresario tests, not for use/CN=$name"
done

# issue <file> <authority> <common name> <alternative names or ""> <from> <to>
issue() {
  openssl ecparam -name prime256v1 -genkey -noout -out "$1.key.pem"
  openssl req -new -key "$1.key.pem" -subj "/O=Impresario tests, not for use/CN=$3" -out "$work/$1.csr"
  mkdir -p "$work/$1.ca"
  : >"$work/$1.ca/index"
  openssl rand -hex 16 >"$work/$1.ca/serial"
  {
    printf '[ca]\ndefault_ca=it\n[it]\nnew_certs_dir=%s\ndatabase=%s\nserial=%s\n' \
      "$work/$1.ca" "$work/$1.ca/index" "$work/$1.ca/serial"
    printf 'default_md=sha256\npolicy=any\nx509_extensions=names\nunique_subject=no\n'
    printf '[any]\norganizationName=optional\ncommonName=supplied\n[names]\nbasicConstraints=CA:FALSE\n'
    if [ -n "$4" ]; then printf 'subjectAltName=%s\n' "$4"; fi
  } >"$work/$1.conf"
  openssl ca -batch -notext -config "$work/$1.conf" -cert "$2.pem" -keyfile "$work/$2.key" \
    -in "$work/$1.csr" -out "$1.pem" -startdate "$5" -enddate "$6" 2>/dev/null
}

past=20200101000000Z
future=21200101000000Z
issue server authority localhost 'DNS:localhost,IP:127.0.0.1' $past $future
issue server-renewed authority localhost 'DNS:localhost,IP:127.0.0.1' $past $future
issue w1 authority w1 '' $past $future
issue w2 authority w2 '' $past $future
issue named-by-uri authority 'A worker of the tests' 'URI:spiffe://impresario.test/worker/w1' $past $future
issue named-by-dns authority w2 'DNS:host.example,DNS:w1' $past $future
issue nameless authority 'A worker of the tests' '' $past $future
issue expired authority w1 '' 20000101000000Z 20010101000000Z
issue not-yet-valid authority w1 '' 21100101000000Z $future
issue of-a-stranger stranger w1 '' $past $future
