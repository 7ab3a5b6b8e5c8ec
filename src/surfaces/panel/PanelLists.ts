import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { operatorProblemOf } from "../../domain/OperatorProblem.ts"
import { kindNames } from "../../operations/operator/KindRecords.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import type { Failure } from "../operator/gate/Failures.ts"
import type { Filter } from "./Listing.ts"
import { orRefusal } from "./PanelActs.ts"

/* The parts that pages of lists share. */

/** A page of rows, as operations return it. */
interface Found<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
  readonly truncated?: boolean
}

/**
 * Returns the rows of a list. If the operation refuses the filters, there are no rows, and the list shows the refusal
 * beside the filters.
 */
export const orRefused = Effect.fnUntraced(function*<A, E extends Failure, R>(self: Effect.Effect<Found<A>, E, R>) {
  const found = yield* orRefusal(self)
  if (Result.isSuccess(found)) {
    const { items, total, truncated = false } = found.success
    return { items, total, isCut: truncated, problem: undefined }
  }
  return { items: [] as ReadonlyArray<A>, total: 0, isCut: false, problem: operatorProblemOf(found.failure) }
})

/** Returns the directory URLs of the served profiles. */
export const directoriesOf = ({ profiles, server }: Config): ReadonlyArray<string> =>
  profiles.filter(({ enabled }) => enabled).map(({ name }) => `${server.base_url}/profile/${name}/directory`)

/** Returns the names of the served profiles that have several kinds of certificates. Their lists show every kind. */
export const severalKinds = ({ profiles }: Config): ReadonlyArray<string> =>
  profiles.filter((profile) => profile.enabled && certificateKinds(profile).byName.size > 1).map(({ name }) => name)

/** Returns the filters of a list of orders or of their certificates, with its own filters for state and time. */
export const orderFilters = (config: Config, state: Filter, times: ReadonlyArray<Filter>): ReadonlyArray<Filter> => [
  { name: "profile", label: "Profile", kind: "choice", words: profilesOf(config) },
  state,
  ...severalKinds(config).length === 0
    ? []
    : [{ name: "kind", label: "Kind", kind: "choice", words: kindNames(config) } as const],
  { name: "identifier", label: "Name", kind: "text", hint: "a whole name" },
  { name: "identifierSuffix", label: "Name ends with", kind: "text", hint: "example.org" },
  { name: "identifierContains", label: "Name contains", kind: "text" },
  { name: "certSerial", label: "Serial", kind: "text" },
  { name: "accountId", label: "Account", kind: "text", hint: "id" },
  ...times
]

/** Returns the names of the served profiles. */
export const profilesOf = ({ profiles }: Config): ReadonlyArray<string> =>
  profiles.filter(({ enabled }) => enabled).map(({ name }) => name)

/*
 * Makes templates compact. Their files are laid out for people, but the sent page need not be
 * (docs/contribute/decisions/panel.md, "Weight").
 */

/** Matches end tags that these templates may omit everywhere, because they are optional in HTML. */
const optional = /<\/(?:td|th|tr|li|dt|dd|option)>/g

/**
 * Matches line breaks around cells and rows, where a browser ignores them. The stylesheet shows a dash in a cell only
 * if the cell contains nothing, not even a line break.
 */
const between = /(?<=<\/tr>)\n|(?<=>)\n(?=<\/?(?:td|th|tr)\b)/g

/**
 * Removes the indentation and the optional end tags of a template, because HTML does not need them. Each removed line
 * break becomes a comment, so that faults are still reported with the right line number.
 */
export const lean = (template: string): string =>
  template.replaceAll(/^[ \t]+/gm, "").replaceAll(between, "{#\n#}").replaceAll(optional, "")
