import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import type { ResultKind, SearchResult } from "../../../operations/operator/Search.ts"
import { found, searchRecords } from "../../operator/acts/ServiceActs.ts"
import { urlOf } from "../Listing.ts"
import { askedOf, orRefusal } from "../PanelActs.ts"
import { laggingPage, moved, page } from "../Route.ts"

/* The page that the search box opens. */

const titles: { readonly [K in ResultKind]: string } = {
  account: "Accounts",
  order: "Orders",
  authorization: "Authorizations",
  challenge: "Challenges",
  job: "Jobs",
  eab: "EAB credentials",
  audit: "Audit rows of a request",
  operator: "Operators"
}

const kinds = Object.keys(titles) as ReadonlyArray<ResultKind>

const grouped = (results: ReadonlyArray<SearchResult>) =>
  kinds.map((kind) => ({ title: titles[kind], results: results.filter((one) => one.kind === kind) }))
    .filter((group) => group.results.length > 0)

const examples = (isAdmin: boolean) => [
  {
    what: "An id",
    example: "01890a5d-ac96-774b-bcce-b302099a8057",
    finds: "an account, an order, an authorization, a challenge, a job, the kid of a credential, or a request"
  },
  {
    what: "A serial number",
    example: "0b:ad:ca:fe:00:11",
    finds: "its order; or orders whose serial number begins with it, from six digits on, also after 0x"
  },
  { what: "A contact", example: "ops@example.org", finds: "accounts with a contact that contains it" },
  {
    what: "An address",
    example: "192.0.2.7",
    finds: "accounts whose first or last request came from it"
  },
  {
    what: "A name",
    example: "www.example.org",
    finds: "orders with this name, with names that end with it, and with names that contain it"
  },
  ...(isAdmin ? [{ what: "An operator", example: "olga", finds: "operators whose name contains it" }] : [])
]

/** The route of the search box. */
export const searchRoutes = [
  laggingPage("/ui/search", (given) =>
    Effect.gen(function*() {
      const { query, sender } = given
      const isAdmin = sender.role === "admin"
      const text = (query.get("q") ?? "").trim()
      const isTyping = query.get("typing") === "1"
      if (text === "") return page("search", "Search", { examples: examples(isAdmin) })
      const answer = yield* orRefusal(
        Effect.flatMap(Effect.fromResult(askedOf(searchRecords.input, given)), ({ q }) => found(q, isTyping))
      )
      if (Result.isFailure(answer)) {
        const problem = operatorProblemOf(answer.failure)
        return page("search", "Search", { query: text, problem, examples: examples(isAdmin) }, {
          status: problem.status
        })
      }
      const { hint, isExact, results, truncated } = answer.success
      const [first, ...others] = results
      if (!isTyping && isExact && first !== undefined && others.length === 0) return moved(first.url)
      const isName = !isExact && results.some(({ kind }) => kind === "order")
      return page("search", "Search", {
        query: text,
        groups: grouped(results),
        isCut: truncated,
        hint,
        moreOrders: isName ? urlOf("/ui/orders", { identifierContains: text }) : undefined,
        examples: examples(isAdmin)
      })
    }))
]
