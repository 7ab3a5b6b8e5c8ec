import { populateBusy } from "../../tools/bench/Busy.ts"
import { layCa } from "../support/LaidCa.ts"
import { writeCampaign } from "./CampaignRows.ts"
import type { DemoState } from "./DemoState.ts"
import { writeOutage } from "./OutageRows.ts"
import { pastSigner } from "./PastCertificates.ts"

/* The states in which a demo can begin. */

const daySeconds = 86_400
const hourSeconds = 3600

const rfc3339 = (at: number): string => new Date(at * 1000).toISOString().replace(/\.\d+Z$/, "Z")

const teams = Array.from({ length: 36 }, (_, index) => `team-${String(index + 1).padStart(2, "0")}`)

/** Of a hundred orders of the busy population 89 have a certificate, so that this makes a million certificates. */
const million = { accounts: 100_000, orders: 1_125_000, auditRows: 1_000_000 }

/** Every state by its name. */
export const states = {
  full: { shows: "a month of records on every page, unusual ones among them", hasHistory: true },
  empty: { shows: "a first start, with the checklist and without any record", hasHistory: false },
  outage: {
    shows: "many causes at once under Needs attention: no worker, an upstream that is away, an ended CA and more",
    hasHistory: true,
    stopped: async ({ database, directory, now }) => {
      writeOutage(database, now)
      await layCa({ directory, name: "edge", commonName: "Edge CA", end: now - 2 * hourSeconds })
    },
    flags: ["--role", "acme,admin"]
  },
  rotation: {
    shows: "a CA that takes over in an hour, and a retired one beside it",
    hasHistory: true,
    toml: (now) => `
[profiles.corp.signer.local_ca]
cert_path = "ca.pem"
key_path = "ca.key"
crl_path = "ca.crl"
[profiles.corp.signer.local_ca.others.next]
cert_path = "next.pem"
key_path = "next.key"
state = "waiting"
from = "${rfc3339(now + hourSeconds)}"
[profiles.corp.signer.local_ca.others.former]
cert_path = "former.pem"
key_path = "former.key"
state = "retired"
`,
    before: async ({ directory, now }) => {
      await layCa({ directory, name: "next", commonName: "Corp Issuing CA 2", end: now + 3600 * daySeconds })
      await layCa({ directory, name: "former", commonName: "Corp Issuing CA 0", end: now + 20 * daySeconds })
    }
  },
  campaign: {
    shows: "a campaign of three days with its burn-down, and clients that never ask",
    hasHistory: true,
    running: writeCampaign
  },
  forty: {
    shows: "forty profiles",
    hasHistory: true,
    toml: () => teams.map((team) => `[profiles.${team}.challenge]\nbypass = true\n`).join("")
  },
  million: {
    shows: "a million certificates, with their orders and a million rows of the trail",
    hasHistory: false,
    toml: () => "[profiles.default]\n[profiles.devices]\n",
    filled: async ({ database, directory, now, tell }) => {
      const begun = performance.now()
      const { chain } = pastSigner(directory, "ca")(["host.example.org"], now - daySeconds, now + 60 * daySeconds)
      await populateBusy("sqlite", database, million, chain, tell)
      tell(`written in ${Math.round((performance.now() - begun) / 1000)} s`)
    }
  }
} as const satisfies { readonly [name: string]: DemoState }

/** The name of a state. */
export type StateName = keyof typeof states

/** The names of the states. */
export const stateNames = Object.keys(states) as ReadonlyArray<StateName>
