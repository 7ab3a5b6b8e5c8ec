/* The part of the library that is used, apart from the rest of it: what is loaded later is bundled whole. */
export { calculateJwkThumbprint, exportJWK, exportPKCS8, FlattenedSign, generateKeyPair } from "jose"
