import { Random } from "../simulation/Random.ts"
import type { ApiRoute, Member } from "./ApiRoutes.ts"
import { apiRoutes } from "./ApiRoutes.ts"
import { apiToken, csrfToken, ids, sessionToken } from "./Ground.ts"
import type { Group, RequestPlay } from "./Play.ts"
import { bearer, distinct, nobody, nouns, seatOf, session } from "./Play.ts"

/* For every route of the API: a correct request, and requests that each have one wrong parameter or body member. */

type Seat = Pick<RequestPlay, "by"> & Partial<Pick<RequestPlay, "cookie" | "csrf" | "headers">>

const seatFor = ({ by }: ApiRoute): Seat =>
  by === "nobody" ? nobody : session(typeof by === "object" ? by.seat : seatOf[by])

const pathOf = ({ at = {}, route }: ApiRoute, replaced: Readonly<Record<string, string>> = {}): string =>
  (route.split(" ")[1] ?? "").replaceAll(/\{(\w+)\}/g, (_, hole: string) => replaced[hole] ?? at[hole] ?? hole)

const goodBody = ({ body, optional = [] }: ApiRoute): Readonly<Record<string, unknown>> | undefined =>
  body === undefined
    ? undefined
    : Object.fromEntries(
      Object.entries(body).filter(([name]) => !optional.includes(name)).map(([name, { good }]) => [name, good])
    )

/** Values that a body may have instead of a member of any type. */
const anything: ReadonlyArray<unknown> = [null, "", " ", 0, 1.5, true, [], {}, "x".repeat(5000), "a\u0000b"]

/** Values that a query may have instead of a parameter, in their encoded form. */
const written = ["", "%20", "x".repeat(3000), "%00", "%FF", "%"]

/** Returns a value as the name of a play shows it. */
const shown = (value: unknown): string => {
  const text = typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value) ?? "absent"
  return text.length > 60 ? `${text.slice(0, 40)}…(${text.length})` : text
}

/** Returns the operations and the components of the document of the API. */
const partsOf = (text: string): ReadonlyArray<readonly [string, string]> => {
  const { components = {}, paths = {} } = JSON.parse(text) as {
    readonly components?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
    readonly paths?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  }
  return [paths, components].flatMap((all) =>
    Object.entries(all).flatMap(([name, of]) =>
      Object.entries(of).map(([which, part]) => [`${name} ${which}`, JSON.stringify(part)] as const)
    )
  )
}

/** Returns the plays of a route. Plays that test what all routes share are left out unless `isFirst`. */
const playsOf = (route: ApiRoute, isFirst: boolean): ReadonlyArray<RequestPlay> => {
  const [method = "GET"] = route.route.split(" ")
  const path = pathOf(route)
  const needed = (route.needed ?? []).map((name) => `${name}=${encodeURIComponent(String(route.query?.[name]?.good))}`)
  const full = needed.length === 0 ? path : `${path}?${needed.join("&")}`
  const seat = seatFor(route)
  const body = goodBody(route)
  const isChange = method !== "GET"
  const given = body === undefined ? {} : { body }
  const plays: Array<RequestPlay> = []
  const add = (
    name: string,
    more: Partial<RequestPlay> & { readonly without?: ReadonlyArray<keyof RequestPlay> } = {}
  ) => {
    const { without = [], ...rest } = more
    const play = { name: `${route.route} ${name}`, target: full, method, ...given, ...seat, ...rest }
    plays.push(
      Object.fromEntries(
        Object.entries(play).filter(([key]) => !without.includes(key as keyof RequestPlay))
      ) as unknown as RequestPlay
    )
  }
  const anonymous = { without: ["cookie", "csrf", "headers"] as const, by: "nobody" }

  add("good", route.route.endsWith("/openapi.json") ? { parts: partsOf } : {})
  for (const who of ["vera", "olga", "anna", "dora-half", "carl"]) add(`by the session of ${who}`, session(who))
  for (const who of ["vera", "olga", "anna"]) {
    add(`by the token of ${who}`, { ...anonymous, ...bearer(who), without: ["cookie", "csrf"] })
  }
  add("by nobody", anonymous)
  if (isChange) {
    add("without the CSRF token", { without: ["csrf"] })
    add("with another CSRF token", { csrf: csrfToken("nobody") })
    add("from another origin", { headers: { origin: "https://elsewhere.example" } })
  }
  const [first] = /\{(\w+)\}/.exec(route.route)?.slice(1) ?? []
  if (first !== undefined) {
    const usual = isFirst
      ? [ids.nobody, ids.nobody.toUpperCase(), "0", "x", "%2e%2e", "a%2fb", "%20", "x".repeat(250), "%FF", "%00"]
      : [ids.nobody, "x", "a%2fb", "x".repeat(250)]
    for (const value of [...route.others ?? [], ...usual]) {
      add(`${first}=${shown(value)}`, { target: pathOf(route, { [first]: value }) })
    }
  }
  for (const [name, { good, odd = [] }] of Object.entries(route.query ?? {})) {
    const at = (value: string) => `${path}?${name}=${value}`
    // An export has the same filters as the list.
    const isExport = path.endsWith("/export") && name !== "format"
    for (const value of isExport ? [good, ...odd.slice(-1)] : [good, ...odd]) {
      add(`?${name}=${shown(value)}`, { target: at(encodeURIComponent(String(value))) })
    }
    for (const value of isExport ? [] : written) {
      add(`?${name}=${shown(value)} as written`, { target: at(value) })
    }
    add(`?${name} twice`, {
      target: `${at(encodeURIComponent(String(good)))}&${name}=${encodeURIComponent(String(good))}`
    })
    add(`?${name} without a value`, { target: `${path}?${name}` })
  }
  add("?unknown=1", { target: `${path}?unknown=1` })
  for (const [name, { good, odd = [] }] of Object.entries(route.body ?? {})) {
    const { [name]: _, ...rest } = body ?? {}
    add(`${name} absent`, { body: rest })
    for (const value of [good, ...odd, ...anything]) {
      add(`${name}=${shown(value)}`, { body: { ...rest, [name]: value } })
    }
    const member = `${JSON.stringify(name)}:${JSON.stringify(good)}`
    add(`${name} twice`, {
      body: `{${
        [
          member,
          ...Object.entries(rest).map(([one, value]) => `${JSON.stringify(one)}:${JSON.stringify(value)}`),
          member
        ].join()
      }}`
    })
    add(`${name} in upper case`, { body: { ...rest, [name.toUpperCase()]: good } })
  }
  if (body === undefined) {
    add("with a body that is empty JSON", { body: {} })
    if (isChange) {
      add("with a body that is no JSON", { body: "x" })
      add("with a member", { body: { unknown: 1 } })
    }
  } else {
    add("with an unknown member", { body: { ...body, unknown: 1 } })
    add("with a member __proto__", { body: `{"__proto__":{},${JSON.stringify(body).slice(1)}` })
    add("without a body", { without: ["body"] })
    for (
      const odd of isFirst
        ? ["", "{", "null", "[]", "\"x\"", "1", "{}", " ", "{}{}", "[".repeat(2000)]
        : ["", "{", "[]"]
    ) add(`with the body ${shown(odd)}`, { body: odd })
    if (isFirst) add("with a body that is not UTF-8", { body: Buffer.from([0x7b, 0xff, 0x7d]) })
    add("with a body that is too large", { body: "x".repeat(65_537) })
    const types = [
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/json5",
      "",
      "application/json; charset=utf-8",
      "application/json; charset=latin1",
      "APPLICATION/JSON"
    ]
    for (const type of isFirst ? types : types.slice(0, 2)) {
      add(`with the media type ${shown(type)}`, { headers: { "content-type": type } })
    }
    add("with a content encoding", { headers: { "content-encoding": "gzip" } })
  }
  for (
    const other of isFirst
      ? ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
      : ["HEAD", "PUT", "OPTIONS"]
  ) {
    if (other !== method && !apiRoutes.some((one) => one.route === `${other} ${route.route.split(" ")[1] ?? ""}`)) {
      add(`with ${other}`, { method: other, without: ["body"] })
    }
  }
  add("with a slash behind it", { target: `${path}/` })
  add("in upper case", { target: path.toUpperCase() })
  if (isFirst) add("with a slash more", { target: path.replace("/api/", "/api//") })
  return plays
}

/** Returns the plays of some routes. The first route with a body, and the first without one, get every play. */
const everyPlayOf = (routes: ReadonlyArray<ApiRoute>): ReadonlyArray<RequestPlay> => {
  const first = [routes.find(({ body }) => body !== undefined), routes.find(({ body }) => body === undefined)]
  return routes.flatMap((route) => playsOf(route, first.includes(route)))
}

/** Returns plays with each possible mistake in credentials, at one route of each noun. */
const credentialPlays = (route: ApiRoute): ReadonlyArray<RequestPlay> => {
  const [method = "GET"] = route.route.split(" ")
  const plain = {
    target: pathOf(route),
    method,
    by: "somebody",
    ...goodBody(route) === undefined ? {} : { body: goodBody(route) }
  }
  const play = (name: string, more: Partial<RequestPlay>): RequestPlay => ({
    name: `${route.route} with ${name}`,
    ...plain,
    ...more
  })
  const cookie = `__Host-acme_admin_session=${sessionToken("anna")}`
  const authorization = (text: string) => ({ headers: { authorization: text } })
  return [
    ...["late", "sleepy", "nobody"].map((seat) => play(`the session of ${seat}`, session(seat))),
    play("a session of another form", { cookie: "x" }),
    play("an empty session", { cookie: "" }),
    play("a cookie in quotes", { headers: { cookie: cookie.replace("=", "=\"") + "\"" } }),
    play("a cookie twice", { headers: { cookie: `${cookie}; ${cookie}` } }),
    play("a cookie in two headers", { headers: { cookie: [cookie, cookie] } }),
    play("another cookie", { headers: { cookie: `theme=dark; ${cookie}` } }),
    ...["vera-revoked", "olga-expired", "olga-elsewhere", "carl", "nobody"].map((seat) =>
      play(`the token of ${seat}`, bearer(seat))
    ),
    ...[
      "Bearer",
      "Bearer ",
      "Bearer x",
      "Basic eDp5",
      "x",
      "",
      `bearer ${apiToken("anna")}`,
      `Bearer  ${apiToken("anna")}`,
      `Bearer ${apiToken("anna")}x`,
      `Bearer ${apiToken("anna")} x`,
      `Token ${apiToken("anna")}`
    ]
      .map((text) => play(`Authorization ${shown(text.replace(apiToken("anna"), "‹token›"))}`, authorization(text))),
    play("Authorization twice", {
      headers: { authorization: [`Bearer ${apiToken("anna")}`, `Bearer ${apiToken("anna")}`] }
    }),
    play("a session and a token", { ...session("anna"), headers: { authorization: `Bearer ${apiToken("anna")}` } })
  ]
}

const values: ReadonlyArray<string> = [
  "",
  "0",
  "1",
  "-1",
  "x",
  "default",
  "none",
  "true",
  "%00",
  "2027-01-01",
  "valid",
  "json",
  "200",
  "🔐",
  "' OR 1=1 --"
]

/** Returns requests with random parts. */
const fuzz = (routes: ReadonlyArray<ApiRoute>, noun: string, many: number): ReadonlyArray<RequestPlay> => {
  const random = new Random("replay", noun)
  const drawn = (members: Readonly<Record<string, Member>>, any: ReadonlyArray<unknown>) =>
    Object.entries(members).filter(() => random.chance(0.6)).map(([name, { good, odd = [] }]) =>
      [name, random.chance(0.5) ? good : random.pick(random.chance(0.5) && odd.length > 0 ? odd : any)] as const
    )
  return Array.from({ length: many }, (_, index): RequestPlay => {
    const route = random.pick(routes)
    const [method = "GET"] = route.route.split(" ")
    const query = drawn(route.query ?? {}, values)
    if (random.chance(0.1)) query.push([random.pick(["unknown", "limit", "__proto__", "profile"]), "1"])
    const body = route.body === undefined ? undefined : Object.fromEntries(drawn(route.body, anything))
    const seat = random.chance(0.8) ? seatFor(route) : session(random.pick(["vera", "olga", "anna"]))
    const path = random.chance(0.8) || route.at === undefined
      ? pathOf(route)
      : pathOf(
        route,
        Object.fromEntries(
          Object.keys(route.at).map((hole) => [hole, random.pick([ids.nobody, "x", "anna", "default"])])
        )
      )
    const text = query.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")
    return {
      name: `${route.route} fuzz ${index + 1}`,
      target: text === "" ? path : `${path}?${text}`,
      method: random.chance(0.95) ? method : random.pick(["GET", "POST", "PUT", "HEAD"]),
      ...body === undefined ? {} : { body },
      ...seat
    }
  })
}

/** Paths that do not exist. */
const strays: ReadonlyArray<RequestPlay> = [
  "/api",
  "/api/",
  "/api/none",
  "/api//orders",
  "/api/orders%2f",
  "/api/Orders",
  "/API/orders",
  "/api/orders/../jobs",
  "/health/",
  "/Health",
  "/health?x=1",
  "/none"
].flatMap((target) => [
  { name: `${target} by vera`, target, ...session("vera") },
  { name: `${target} by nobody`, target, ...nobody },
  { name: `${target} with POST`, target, method: "POST", body: {}, ...session("anna") }
])

/** Every group. */
export const apiGroups: ReadonlyArray<Group> = nouns.flatMap((noun): ReadonlyArray<Group> => {
  const routes = apiRoutes.filter((route) => route.noun === noun)
  const [first] = routes
  if (first === undefined) return []
  const plays = distinct([
    ...everyPlayOf(routes),
    ...credentialPlays(routes.find(({ route }) => route.startsWith("GET")) ?? first),
    ...fuzz(routes, noun, 15 + 5 * routes.length),
    ...noun === "service" ? strays : []
  ])
  const group: Group = { noun, surface: "api", plays }
  if (noun !== "session") return [group]
  const half = routes.filter(({ route }) => route.includes("/session/mfa") || route === "POST /api/session")
  return [group, { noun, surface: "api", isStrict: true, plays: distinct(everyPlayOf(half)) }]
})
