import { existsSync } from "node:fs"

/** The PKCS#11 module of SoftHSM2, where Debian's package puts it. */
export const softhsmModule: string = [
  "/usr/lib/softhsm",
  "/usr/lib/x86_64-linux-gnu/softhsm",
  "/usr/lib/aarch64-linux-gnu/softhsm"
].map((at) => `${at}/libsofthsm2.so`).find((file) => existsSync(file)) ?? "/usr/lib/softhsm/libsofthsm2.so"
