import { firstCertificate } from "./FirstCertificate.ts"
import { firstPanel } from "./FirstPanel.ts"
import { inContainers, onKubernetes } from "./Manifests.ts"
import { metricsInGrafana } from "./Metrics.ts"
import { newPostgres } from "./NewPostgres.ts"
import { secondMachine } from "./SecondMachine.ts"
import { underSystemd } from "./UnderSystemd.ts"
import type { Way } from "./Way.ts"

/** All ways, in the order of the documents. */
export const ways: ReadonlyArray<Way> = [
  firstCertificate,
  firstPanel,
  secondMachine,
  newPostgres,
  underSystemd,
  metricsInGrafana,
  inContainers,
  onKubernetes
]
