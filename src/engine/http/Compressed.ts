import * as Effect from "effect/Effect"
import { promisify } from "node:util"
import { gzip } from "node:zlib"

const compress = promisify(gzip)

/**
 * Compresses octets with gzip as far as possible, even if that is slow. This is for content that is compressed once and
 * sent often.
 */
export const deflated = (octets: Uint8Array): Effect.Effect<Buffer> =>
  Effect.promise(() => compress(octets, { level: 9 }))
