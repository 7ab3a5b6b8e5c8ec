import { compose } from "../packages/Compose.ts"
import type { Installation } from "../packages/Installation.ts"
import { install } from "../packages/Installation.ts"
import { kubernetes } from "../packages/Kubernetes.ts"
import { text } from "../support/Documents.ts"
import { shownCommands } from "./Page.ts"
import type { Steps, Way } from "./Way.ts"

/* Ways that end in a cluster or a container engine, which are not here. Their files are checked by their schemas. */

/** Checks the files of an installation, and fails with its first failure. */
const checked = async (steps: Steps, installation: Installation): Promise<void> => {
  const outcomes = await install(installation, { tarball: "", say: () => undefined })
  for (const { error, scenario } of outcomes) if (error !== undefined) throw new Error(`${scenario}: ${error}`)
  steps.said(`${outcomes.length} checks by schema`)
}

const containersPage = "docs/start/containers.md"

/** From the clone to a container, whose image the page builds. */
export const inContainers: Way = {
  name: "containers",
  before: "",
  page: containersPage,
  commands: compose.commands,
  go: (steps) => {
    for (const command of shownCommands(containersPage)) {
      if (/^podman (?:build|run) /.test(command)) steps.typed(command)
    }
    return checked(steps, compose)
  }
}

const kubernetesPage = "docs/start/kubernetes.md"

/** From the manifests to a cluster: the secrets of the page, an edit of each file, and the command. */
export const onKubernetes: Way = {
  name: "Kubernetes",
  before: "",
  page: kubernetesPage,
  commands: kubernetes.commands,
  go: (steps) => {
    for (const [, file] of text(kubernetesPage).matchAll(/^- `([\w.]+)`: /gm)) steps.done(`${file} is edited`)
    for (const [, secret] of text(kubernetesPage).matchAll(/^\| `(acme-svc-[\w-]+)` +\| `(?:url|ca|tls)/gm)) {
      steps.typed(`kubectl create secret … ${secret}`)
    }
    for (const command of shownCommands(kubernetesPage)) steps.typed(command)
    return checked(steps, kubernetes)
  }
}
