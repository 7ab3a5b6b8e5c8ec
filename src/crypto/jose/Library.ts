/* Exports only the used part of the library, because a dynamic import would bundle the whole of it. */
export { calculateJwkThumbprint, exportJWK, exportPKCS8, FlattenedSign, generateKeyPair } from "jose"
