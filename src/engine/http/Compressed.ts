import * as Effect from "effect/Effect"
import { promisify } from "node:util"
import { gzip } from "node:zlib"

const compress = promisify(gzip)

/** Octets as gzip, small rather than fast: for what is compressed once and sent often. */
export const deflated = (octets: Uint8Array): Effect.Effect<Buffer> =>
  Effect.promise(() => compress(octets, { level: 9 }))
