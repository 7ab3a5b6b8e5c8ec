import { parseBindAddress } from "../engine/net/SocketAddress.ts"
import type { Given } from "./Dialogue.ts"

/* What is left to do after `setup`. */

/** What the next steps depend on besides the answers. */
export interface SetupEnd {
  /** The file of the configuration, as the next commands must name it; undefined if they find it by themselves. */
  readonly named: string | undefined
  readonly isUnit: boolean
  /** The request for the CA's certificate, if there is one. */
  readonly request: string | undefined
  readonly hasOperator: boolean
}

const beforeOf = (named: string | undefined) => named === undefined ? "" : `ACME_SVC_CONFIG=${named} `

const operatorStep = ({ answers }: Given, named: string | undefined) =>
  `${beforeOf(named)}acme-svc admin user create ${answers["operator"] ?? ""} --role admin`

/** Returns the commands that do what `setup` has not done if it fails after it has made the database. */
export const restSteps = (
  given: Given,
  { administratorUrl, lacksCa, named, request }: Pick<SetupEnd, "named" | "request"> & {
    readonly lacksCa: boolean
    /** The URL without the password. */
    readonly administratorUrl: string
  }
): ReadonlyArray<string> => [
  ...lacksCa && request === undefined ? [`${beforeOf(named)}acme-svc ca csr --out issuing.csr`] : [],
  ...lacksCa ? [`${beforeOf(named)}acme-svc ca import - < issuing.pem`] : [],
  `${beforeOf(named)}acme-svc init --database ${administratorUrl}`,
  ...given.answers["panel"] === "yes" ? [operatorStep(given, named)] : []
]

/** Returns the next steps, one line for each. */
export const nextSteps = (given: Given, { hasOperator, isUnit, named, request }: SetupEnd): string => {
  const { answers } = given
  const before = beforeOf(named)
  const port = parseBindAddress(answers["listen"] ?? "")?.port ?? 0
  const steps = [
    ...request === undefined ? [] : [
      `Let your root sign ${request}, then: ${before}acme-svc ca import - < issuing.pem`
    ],
    ...isUnit && port > 0 && port < 1024
      ? [
        `Let the unit listen on port ${port}: systemctl edit acme-svc (docs/operate/service.md, "Under systemd")`
      ]
      : [],
    isUnit ? "systemctl enable --now acme-svc" : `${before}acme-svc serve`,
    `${before}acme-svc health`,
    ...answers["access"] === "credentials" ? [`${before}acme-svc eab create --label "my first client"`] : [],
    ...answers["panel"] !== "yes" || hasOperator
      ? []
      : [operatorStep(given, named)],
    ...answers["panel"] === "yes" ? ["Open http://localhost:3001 on this machine"] : [],
    `Give clients this URL: ${answers["url"] ?? ""}/profile/default/directory`
  ]
  return ["", "The next steps:", "", ...steps.map((step, at) => `  ${at + 1}. ${step}`)].join("\n")
}
