import type { Challenge } from "../Client.ts"
import { scenarios } from "../Scenarios.ts"
import { guideOf } from "./Guide.ts"
import { recipes as all } from "./Recipes.ts"
import type { Row, Tried } from "./Rows.ts"
import { rows } from "./Rows.ts"

/*
 * Says which rows of docs/clients/README.md were run. This is derived from what `npm run interop` does and cannot be
 * stated by hand.
 */

const ran = "**run**"

const plays = ({ client }: Tried, name: string, challenge?: Challenge): boolean => {
  const scenario = scenarios.find((one) => one.name === name)
  if (scenario === undefined) throw new Error(`no scenario is called ${name}`)
  return client !== undefined
    && client.challenges.some((one) => (challenge ?? one) === one && scenario.isFor(client, one))
}

const says = ({ recipes = [] }: Tried, word: string): boolean =>
  all.some(({ document, heading }) =>
    recipes.includes(heading) && guideOf(document).get(heading)?.some(({ body }) => body.includes(word)) === true
  )

const cellsOf = ({ ari, byHand, dns01, eab, name, set, tried }: Row): ReadonlyArray<string> => {
  if (tried === undefined) {
    return [name, byHand === undefined ? "not run here" : `${byHand}, by hand`, eab, dns01, ari, set]
  }
  return [
    name,
    tried.version,
    plays(tried, "external account") || says(tried, "HMAC_KEY") ? ran : eab,
    plays(tried, "wildcard", "dns-01") || says(tried, "--dns-rfc2136") ? ran : dns01,
    plays(tried, "renewal information") ? ran : ari,
    set
  ]
}

/** Returns the table's cells, line by line. */
export const triedClients = (): ReadonlyArray<ReadonlyArray<string>> => rows.map(cellsOf)

/**
 * Returns the rows of docs/clients/README.md whose version differs from these lines of packages, each with its version
 * as Debian writes it.
 */
export const otherVersions = (packages: string): ReadonlyArray<string> => {
  const here = new Map(packages.split("\n").map((line) => line.split(" ", 2) as [string, string]))
  return rows.flatMap(({ tried }) => {
    const version = here.get(tried?.package ?? "")?.replace(/^\d+:/, "").replace(/[+-].*$/, "")
    return tried === undefined || version === undefined || version === "" || version === tried.version
      ? []
      : [`docs/clients/README.md has ${tried.package} ${tried.version}, this is ${version}`]
  })
}
