import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mapLayerError } from "../../engine/Layers.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { Configured } from "../../surfaces/operator/Acting.ts"
import { filesFailed } from "../CommandFailed.ts"

/**
 * Provides the CAs of profiles. If the certificate of a CA is missing, the lists of the other CAs can still be read,
 * and so can the stored list of this CA. A warning names the missing file.
 */
export const authoritiesIn = ({ profiles }: Pick<Config, "profiles">) =>
  mapLayerError(Issuers.layer(profiles.filter(({ enabled }) => enabled), undefined, () => true), filesFailed).pipe(
    Layer.tap((context) =>
      Effect.forEach(Context.get(context, Issuers).unread, ({ message }) => Console.error(`Warning: ${message}`))
    )
  )

/** Provides the CAs of the profiles of the configuration. */
export const authorities = Layer.unwrap(Effect.map(Configured.config, authoritiesIn))
