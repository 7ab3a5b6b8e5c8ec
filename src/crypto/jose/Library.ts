/* Exports only the part of the library that is used. A direct dynamic import would bundle the whole library. */
export { calculateJwkThumbprint, exportJWK, exportPKCS8, FlattenedSign, generateKeyPair } from "jose"
