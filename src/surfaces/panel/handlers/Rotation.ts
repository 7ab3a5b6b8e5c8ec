import type { listCas, showCa } from "../../operator/acts/AuthorityActs.ts"

/* The steps by which a CA is replaced, for the page of the CA (docs/configure/rotation.md, "Replacing the CA"). */

type Ca = (typeof listCas.output.Type)["items"][number]
type Counted = Pick<typeof showCa.output.Type, "live" | "truncated">

/** A step, and whether it is done. */
interface Step {
  readonly title: string
  readonly text: string
  readonly lines: ReadonlyArray<string>
  readonly isDone: boolean
  readonly link?: { readonly url: string; readonly words: string }
}

/** The steps for one profile of a CA. */
export interface RotationPlan {
  readonly profile: string
  readonly steps: ReadonlyArray<Step>
}

/** Returns what remains to be done to replace a CA at a profile, beside the other CAs of the service. */
const planOf = (ca: Ca & Partial<Counted>, others: ReadonlyArray<Ca>, profile: string): RotationPlan => {
  const here = others.filter((other) => other.issuer !== ca.issuer && other.profiles.includes(profile))
  const waiting = here.find(({ issuance }) => issuance === "waiting")
  const successor = here.find(({ issuance }) => issuance === "issuing")
  const next = waiting ?? successor
  const isOver = ca.issuance === "retired" || ca.issuance === "compromised"
  const isReplaced = ca.live === 0 && ca.truncated === false
  const flag = `--profile ${profile}`
  return {
    profile,
    steps: [
      {
        title: "Make the next CA",
        text: next === undefined
          ? "On the host of its key, with acme-svc ca init, or with ca csr and ca sign below your root (docs/configure/authorities.md)."
          : `${next.subject ?? next.issuer} is there.`,
        lines: [],
        isDone: next !== undefined
      },
      {
        title: "Let everybody trust its root",
        text:
          "Skip this if it is below the same root. Otherwise distribute the new root first; machines then trust both.",
        lines: [],
        isDone: isOver
      },
      {
        title: "Name it in the configuration, with the time from which it issues",
        text: waiting !== undefined
          ? "It waits for its time. Every process then issues with it, without a restart."
          : isOver
          ? "It issues now."
          : "The command checks the new CA and prints what has to stand in the file. With --write it adds that. Then reload every process.",
        lines: next === undefined && !isOver ? [`acme-svc ca rotate ${flag} --to next.pem --at TIME --write`] : [],
        isDone: waiting !== undefined || isOver
      },
      {
        title: "Replace what this CA has signed",
        text: isReplaced
          ? "No certificate of this CA is live."
          : "Certificates are renewed before they expire. A campaign asks clients to renew at once.",
        lines: [],
        isDone: isOver && isReplaced,
        ...isOver && !isReplaced
          ? { link: { url: `/ui/campaigns?issuer=${ca.issuer}`, words: "Start a campaign for this CA…" } }
          : {}
      },
      {
        title: "Remove its root from every store",
        text:
          "When its last certificate has ended, nobody has to trust this CA any more. Until then leave it in the configuration: it still signs its list.",
        lines: [],
        isDone: false
      }
    ]
  }
}

/** Returns the steps by which a CA is replaced, for each of its profiles. */
export const rotationPlans = (ca: Ca & Partial<Counted>, all: ReadonlyArray<Ca>): ReadonlyArray<RotationPlan> =>
  ca.issuance === "waiting" ? [] : ca.profiles.map((profile) => planOf(ca, all, profile))
