import { ClusterIssuer } from "@kubernetes-models/cert-manager/cert-manager.io/v1"
import { Deployment } from "kubernetes-models/apps/v1"
import { Ingress, NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1"
import { PodDisruptionBudget } from "kubernetes-models/policy/v1"
import type { IPodSpec } from "kubernetes-models/v1"
import { ConfigMap, Namespace, PersistentVolumeClaim, Service, ServiceAccount } from "kubernetes-models/v1"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import ts from "typescript"
import { parse, parseAllDocuments } from "yaml"
import { runCommand } from "../interop/Command.ts"
import { bodiesOf } from "../support/Documents.ts"
import { makeCa } from "../support/Openssl.ts"
import { runToEnd } from "../support/Server.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"

/*
 * Checks the manifests that kubectl builds from `deploy/kubernetes`: values with the schemas of Kubernetes, names of
 * fields with its types, pods with the profile "restricted", and the configuration with the service itself. There is no
 * cluster.
 */

const repository = resolve(import.meta.dirname, "../..")

/** The kinds that the manifests and the examples next to them may contain, each with its schema and its type. */
const kinds = {
  ClusterIssuer: {
    model: ClusterIssuer,
    type: "import(\"@kubernetes-models/cert-manager/cert-manager.io/v1\").IClusterIssuer"
  },
  ConfigMap: { model: ConfigMap, type: "import(\"kubernetes-types/core/v1\").ConfigMap" },
  Deployment: { model: Deployment, type: "import(\"kubernetes-types/apps/v1\").Deployment" },
  Ingress: { model: Ingress, type: "import(\"kubernetes-types/networking/v1\").Ingress" },
  Namespace: { model: Namespace, type: "import(\"kubernetes-types/core/v1\").Namespace" },
  NetworkPolicy: { model: NetworkPolicy, type: "import(\"kubernetes-types/networking/v1\").NetworkPolicy" },
  PersistentVolumeClaim: {
    model: PersistentVolumeClaim,
    type: "import(\"kubernetes-types/core/v1\").PersistentVolumeClaim"
  },
  PodDisruptionBudget: {
    model: PodDisruptionBudget,
    type: "import(\"kubernetes-types/policy/v1\").PodDisruptionBudget"
  },
  Service: { model: Service, type: "import(\"kubernetes-types/core/v1\").Service" },
  ServiceAccount: { model: ServiceAccount, type: "import(\"kubernetes-types/core/v1\").ServiceAccount" }
}

/** An object of a manifest, with the members that every object has. */
interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

type Kind = keyof typeof kinds
const isKind = (word: string): word is Kind => Object.hasOwn(kinds, word)

const nameOf = ({ kind, metadata: { name } }: Manifest): string => `${kind} ${name}`

const rendered = async (): Promise<ReadonlyArray<Manifest>> =>
  parseAllDocuments(await runCommand("kubectl", ["kustomize", "deploy/kubernetes"], { cwd: repository }))
    .map((document): Manifest => document.toJS())

/**
 * Returns the examples of the document that are objects of Kubernetes. Traefik's example is a configuration of Traefik.
 */
const examples = (): ReadonlyArray<Manifest> =>
  bodiesOf("docs/clients/kubernetes.md", "yaml").filter((body) => body.startsWith("apiVersion:")).map((
    body
  ): Manifest => parse(body))

const fitsSchema = (manifest: Manifest): void => {
  const { kind } = manifest
  if (!isKind(kind)) throw new Error(`no schema of ${nameOf(manifest)}`)
  const { model: Model } = kinds[kind]
  try {
    new Model(JSON.parse(JSON.stringify(manifest))).validate()
  } catch (error) {
    throw new Error(`${nameOf(manifest)}: ${String(error)}`, { cause: error })
  }
}

/**
 * Returns the compiler's messages about the objects as literals of their types, which report unknown and missing
 * fields.
 */
const faultsOfTypes = (manifests: ReadonlyArray<Manifest>): ReadonlyArray<string> => {
  const file = join(repository, "test/packages/manifests.ts")
  const text = manifests.map((manifest, index) => {
    const { kind } = manifest
    return `export const m${index}: ${isKind(kind) ? kinds[kind].type : kind} = ${JSON.stringify(manifest)}\n`
  }).join("")
  const options: ts.CompilerOptions = {
    lib: ["lib.es2022.d.ts"],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    noEmit: true,
    skipLibCheck: true,
    strict: true,
    types: []
  }
  const host = ts.createCompilerHost(options)
  const { fileExists, getSourceFile } = host
  const program = ts.createProgram([file], options, {
    ...host,
    fileExists: (name) => name === file || fileExists(name),
    getSourceFile: (name, how) =>
      name === file ? ts.createSourceFile(name, text, how) : getSourceFile.call(host, name, how)
  })
  return ts.getPreEmitDiagnostics(program).map(({ messageText, start = 0 }) => {
    const manifest = manifests[text.slice(0, start).split("\n").length - 1]
    return `${manifest === undefined ? "" : nameOf(manifest)}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`
  })
}

const podsOf = (manifests: ReadonlyArray<Manifest>): ReadonlyArray<{ readonly name: string; readonly pod: IPodSpec }> =>
  manifests.filter(({ kind }) => kind === "Deployment").map((manifest) => {
    const { spec } = new Deployment(structuredClone(manifest))
    const pod: IPodSpec | undefined = spec?.template.spec
    if (pod === undefined) throw new Error(`${nameOf(manifest)} has no pod`)
    return { name: manifest.metadata.name, pod }
  })

/**
 * Checks that a pod fits the profile "restricted" of the pod security standards, and has what this service also needs.
 */
const isRestricted = (name: string, pod: IPodSpec): void => {
  const { initContainers = [], securityContext = {}, volumes = [] } = pod
  check(securityContext.runAsNonRoot === true && securityContext.runAsUser === 65_532, `${name} may run as root`)
  check(securityContext.seccompProfile?.type === "RuntimeDefault", `${name} may make any system call`)
  check(pod.automountServiceAccountToken === false, `${name} has a token of the cluster`)
  check(pod.enableServiceLinks === false, `${name} would be refused its variables ACME_SVC_…`)
  check(volumes.every((volume) => volume.hostPath === undefined), `${name} mounts folders of its machine`)
  for (const { image, resources, securityContext: own = {} } of [...initContainers, ...pod.containers]) {
    check(own.allowPrivilegeEscalation === false && own.privileged !== true, `${name} may gain privileges`)
    check(own.readOnlyRootFilesystem === true, `${name} may change its image`)
    check(JSON.stringify(own.capabilities) === "{\"drop\":[\"ALL\"]}", `${name} keeps capabilities`)
    check(
      resources?.requests?.["memory"] !== undefined && resources.limits?.["memory"] !== undefined,
      `${name} is unlimited`
    )
    check(image?.startsWith("registry.example.org/acme-svc:") === true, `${name} runs ${image}`)
  }
  for (const { livenessProbe, readinessProbe, startupProbe } of pod.containers) {
    const probes = [livenessProbe, readinessProbe, startupProbe]
    check(probes.every((probe) => probe?.httpGet !== undefined), `${name} is not asked for its health`)
  }
}

/** Checks that the key of the CA is mounted only into the pods that use the key. */
const keepsKey = (name: string, { volumes = [] }: IPodSpec): void => {
  const ca = volumes.find((volume) => volume.name === "ca")?.secret
  const given = ca?.items?.map(({ key }) => key).join(" ") ?? "everything"
  const expected = name === "acme-svc-worker" ? "everything" : "tls.crt"
  check(given === expected, `${name} is given ${given} of the CA`)
}

/** Checks that every pod connects to the database with a role of its own, and only `migrate` as the owner. */
const comesAsItself = (name: string, { containers, initContainers = [] }: IPodSpec): void => {
  const secretsOf = (all: ReadonlyArray<(typeof containers)[number]>) =>
    all.flatMap(({ env = [] }) => env.map(({ name: key, valueFrom }) => `${key} ${valueFrom?.secretKeyRef?.name}`))
      .join()
  const role = name.replace("acme-svc-", "")
  const [own, before] = [secretsOf(containers), secretsOf(initContainers)]
  check(own === `ACME_SVC_DATABASE__URL acme-svc-database-${role}`, `${name} comes to the database with ${own}`)
  const expected = role === "worker" ? "ACME_SVC_DATABASE__URL acme-svc-database-migrate" : ""
  check(before === expected, `before ${name}, the database is entered with ${before}`)
  const whole = [...containers, ...initContainers].flatMap(({ envFrom = [] }) => envFrom)
  check(whole.length === 0, `${name} is given every variable of a secret`)
}

/** Returns the value that a key has in the configuration. */
const valueOf = (shown: string, key: string): string => {
  const { items }: { readonly items: ReadonlyArray<{ readonly key: string; readonly value: unknown }> } = JSON.parse(
    shown
  )
  return `${items.find((one) => one.key === key)?.value}`
}

/** Writes files below a folder in the same layout as in the pods, and returns the configuration with their paths. */
const layOut = (config: string, directory: string): string => {
  const here = join(directory, "pod")
  const text = config.replaceAll(/(?<=["=])\/(?:etc|var\/lib)\/acme-svc\//g, (path) => `${here}${path}`)
  const etc = join(here, "etc/acme-svc")
  for (const folder of ["ca", "tls", "database"]) mkdirSync(join(etc, folder), { recursive: true })
  mkdirSync(join(here, "var/lib/acme-svc"), { recursive: true })
  makeCa(join(etc, "ca/tls.crt"), join(etc, "ca/tls.key"), "Manifests")
  makeCa(join(etc, "tls/tls.crt"), join(etc, "tls/tls.key"), "acme.example.org")
  writeFileSync(join(etc, "database/ca.crt"), readFileSync(join(etc, "ca/tls.crt")))
  return text
}

const play = async ({ directory, step }: Site): Promise<void> => {
  const manifests = await step("kubectl makes them", rendered)
  await step("fit the schemas, as the examples for others do", async () => {
    const others = examples()
    check(others.map(({ kind }) => kind).join(" ") === "ClusterIssuer Ingress", "examples are missing")
    for (const manifest of [...manifests, ...others]) fitsSchema(manifest)
    const [fault] = faultsOfTypes([...manifests, ...others])
    check(fault === undefined, `${fault}`)
  })
  const pods = podsOf(manifests)
  await step("run restricted pods", async () => {
    check(
      pods.map(({ name }) => name).sort().join(" ") === "acme-svc-acme acme-svc-admin acme-svc-worker",
      "roles are missing"
    )
    for (const { name, pod } of pods) isRestricted(name, pod)
    for (const { name, pod } of pods) keepsKey(name, pod)
    for (const { name, pod } of pods) comesAsItself(name, pod)
  })
  const config = manifests.find(({ kind }) => kind === "ConfigMap")
  const text = new ConfigMap(structuredClone(config) ?? {}).data?.["config.toml"] ?? ""
  const laidOut = {
    config: layOut(text, directory),
    directory: join(directory, "pod"),
    env: { ACME_SVC_DATABASE__URL: "postgres://acme_front:secret@db.example/acme" }
  }
  check(!/^\[database\]|PGPASSWORD/m.test(text), "the pods share what leads to the database")
  await step("configure the service", async () => {
    const { code, stderr, stdout } = await runToEnd(["config", "check"], laidOut)
    check(code === 0, `${stdout}${stderr}`)
    const shown = await runToEnd(["config", "show", "--json"], laidOut)
    const longest = Number(valueOf(shown.stdout, "server.request_timeout_ms")) / 1000 + 10
    for (const { name, pod: { containers, terminationGracePeriodSeconds = 0 } } of pods) {
      const before = containers[0]?.lifecycle?.preStop?.sleep?.seconds ?? 0
      check(
        terminationGracePeriodSeconds >= before + longest,
        `${name} is not given the ${before + longest} s it may take`
      )
      for (const { containerPort, name: port } of containers.flatMap(({ ports = [] }) => ports)) {
        const key = port === "acme" ? "server.bind_address" : `${port}.bind_address`
        const address = valueOf(shown.stdout, key)
        check(address === `[::]:${containerPort}`, `${name} has ${port} at ${containerPort}, and ${key} is ${address}`)
      }
    }
  })
}

/** `deploy/kubernetes`. */
export const kubernetes: Installation = { name: "Kubernetes manifests", commands: ["kubectl", "openssl"], play }
