#!/bin/sh
# Runs Pebble so that it neither sleeps nor refuses nonces:
# pebble.sh PROGRAM DIRECTORY PORT RESOLVER HTTP_01_PORT
set -eu
program=$1 directory=$2 port=$3 resolver=$4 http_01_port=$5
if ! command -v "$program" > /dev/null; then
  echo "$program is not installed; on Debian: apt-get install pebble" >&2
  exit 1
fi
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$directory/key.pem" -out "$directory/cert.pem" 2> /dev/null
cat > "$directory/pebble.json" << END
{"pebble": {
  "listenAddress": "127.0.0.1:$port",
  "certificate": "$directory/cert.pem",
  "privateKey": "$directory/key.pem",
  "httpPort": $http_01_port,
  "tlsPort": 5001
}}
END
export PEBBLE_VA_NOSLEEP=1 PEBBLE_WFE_NONCEREJECT=0 PEBBLE_AUTHZREUSE=0
exec "$program" -config "$directory/pebble.json" -dnsserver "$resolver"
