import { readWhole } from "../../domain/WholeNumber.ts"
import { rfc3339 } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"

/*
 * Makes lists. The filters, the page and the export of a list are parts of its URL. All of its links are made from one
 * description.
 */

/** A filter of a list, as its form shows it. */
export interface Filter {
  readonly name: string
  readonly label: string
  readonly kind: "text" | "choice" | "date"
  /** The words of a choice, without the empty choice. */
  readonly words?: ReadonlyArray<string>
  /** The label of the empty choice; `any` by default. */
  readonly none?: string
  readonly hint?: string
}

/** The highest number of rows on a page. */
const pageRows = 50

/** The last page that can be requested. Rows on later pages can be found with filters. */
const lastPage = 100_000

/** Returns the page that a query names. The first page is 1. */
const pageOf = (query: URLSearchParams): number => {
  return Math.min(Math.max(readWhole(query.get("page") ?? "") ?? 1, 1), lastPage)
}

/**
 * Returns the window of rows that a query names, in the form that operations use. A page has at most
 * `admin.page_size_max` rows.
 */
export const windowOf = (
  query: URLSearchParams,
  { admin }: { readonly admin: Pick<Config["admin"], "page_size_max"> }
): { readonly limit: number; readonly offset: number } => {
  const limit = Math.min(pageRows, admin.page_size_max)
  return { limit, offset: (pageOf(query) - 1) * limit }
}

/** Returns a path with its parameters. A blank parameter is left out. */
export const urlOf = (path: string, parameters: { readonly [name: string]: string | undefined }): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value.trim() !== "") query.set(name, value.trim())
  }
  return query.size === 0 ? path : `${path}?${query}`
}

/** Returns the values of these filters in a query, by name. A blank value counts as absent. */
export const filtersIn = (
  query: URLSearchParams,
  filters: ReadonlyArray<Filter>
): { readonly [name: string]: string | undefined } => {
  const given: { [name: string]: string } = {}
  for (const { name } of filters) {
    const value = query.get(name)?.trim()
    if (value !== undefined && value !== "") given[name] = value
  }
  return given
}

/**
 * Returns a filter with its value. An unknown value of a choice is added to the words of the choice, so that the form
 * shows it.
 */
const shownFilter = ({ none = "any", words = [], ...filter }: Filter, value: string) => ({
  ...filter,
  none,
  value,
  words: value === "" || words.includes(value) ? words : [...words, value]
})

const daySeconds = 86_400

/**
 * Returns links for the last day, week and month. The links set `since`, drop `until` and keep the other filters of a
 * list.
 */
export const periodsOf = (path: string, query: URLSearchParams, filters: ReadonlyArray<Filter>, now: number) => {
  const { until: _, ...given } = filtersIn(query, filters)
  const minute = now - now % 60
  return [["24 h", 1], ["7 d", 7], ["30 d", 30]].map(([label, days]) => ({
    label,
    url: urlOf(path, { ...given, since: rfc3339(minute - Number(days) * daySeconds) })
  }))
}

/** The counts of a list and of its current page. */
export interface Counted {
  readonly total: number
  /** The number of rows on a full page. */
  readonly limit: number
  /** How many rows are on this page. */
  readonly shown: number
  /** Whether the search ended before it had read every row. */
  readonly isCut?: boolean
}

/**
 * Returns a list in the form that its template shows. `sort` is the order of the list, if the query names one; the other
 * pages keep it.
 */
export const listView = (
  path: string,
  query: URLSearchParams,
  filters: ReadonlyArray<Filter>,
  { isCut = false, limit, shown, total }: Counted,
  exports?: { readonly path: string; readonly most: number; readonly command?: string },
  sort?: string
) => {
  const given = filtersIn(query, filters)
  const page = pageOf(query)
  const first = (page - 1) * limit
  const to = (target: number) => urlOf(path, { ...given, sort, page: target === 1 ? undefined : String(target) })
  return {
    path,
    filters: filters.map((filter) => shownFilter(filter, given[filter.name] ?? "")),
    isFiltered: Object.keys(given).length > 0,
    total,
    isCut,
    from: shown === 0 ? 0 : first + 1,
    to: first + shown,
    page,
    ...(page > 1 ? { previous: to(page - 1) } : {}),
    // The rows of this page no longer exist, or the page number in the URL is too high.
    ...(shown === 0 && page > 1 ? { last: to(Math.min(page - 1, Math.max(1, Math.ceil(total / limit)))) } : {}),
    ...(first + shown < total ? { next: to(page + 1) } : {}),
    ...(exports === undefined ? {} : {
      exports: total > exports.most
        ? { most: exports.most, command: exports.command }
        : {
          csv: urlOf(exports.path, { ...given, format: "csv" }),
          json: urlOf(exports.path, { ...given, format: "json" })
        }
    })
  }
}
