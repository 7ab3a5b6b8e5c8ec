import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mapLayerError } from "../../engine/Layers.ts"
import { PublicKeys } from "../../services/keys/PublicKeys.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import { Configured } from "../../surfaces/operator/Acting.ts"
import { kindActs } from "../../surfaces/operator/acts/KindActs.ts"
import { filesFailed } from "../CommandFailed.ts"
import { actCommand } from "./ActCommand.ts"

/** What a CSR is judged with: the lists of refused keys, and the certificates of the CAs. */
const judging = Layer.unwrap(Effect.map(Configured.config, ({ keys, profiles }) =>
  mapLayerError(
    Layer.merge(
      PublicKeys.layer(keys.blocklist_paths),
      Issuers.layer(profiles.filter(({ enabled }) => enabled), undefined, () => true)
    ),
    filesFailed
  )))

/** `kinds`: the kinds of certificates. */
export const kindsCommand = actCommand(kindActs, "kinds", {}, { "kinds try": judging })
