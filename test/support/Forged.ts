import type { Ask, Held } from "./Asked.ts"

/* Requests to operators' surfaces that must reach no handler, for attacks on every route. */

/**
 * Returns paths that are similar to this one, which begins with `root`: `/api/` or `/ui/`. Slashes are doubled or
 * trailing, dot segments go away and back, letters are encoded or in another case, and one path is in absolute form.
 */
export const crookedPathsOf = (path: string, root: string): ReadonlyArray<string> => {
  const name = root.slice(1, -1)
  const under = (other: string) => path.replace(root, other)
  return [
    `${path}/`,
    `/${path}`,
    under(`/${name}//`),
    under(`/${name}/./`),
    under(`/${name}/x/../`),
    under(`/${name.toUpperCase()}/`),
    under(`/%${name.charCodeAt(0).toString(16)}${name.slice(1)}/`),
    under(`/${name}%2f`),
    `${path}%00`,
    `${path}%20`,
    `${path};x`,
    `${path}\\`,
    `http://localhost${path}`
  ]
}

/** Returns the change as sites other than that of `baseUrl` would send it. Each request has the right token. */
export const fromElsewhere = (change: Ask, held: Held, baseUrl: string): ReadonlyArray<Ask> =>
  [
    ...["https://evil.example", "null", "", `${baseUrl}.evil.example`].map((origin) => ({ origin })),
    { "sec-fetch-site": "cross-site" }
  ].map((headers) => ({ ...change, ...held, headers }))

/**
 * Returns the change with a wrong token: none, an empty one, that of another session, a truncated one, or the right one
 * twice.
 */
export const withoutToken = (change: Ask, { cookie, csrf }: Held, other: Held): ReadonlyArray<Ask> =>
  [
    {},
    { csrf: "" },
    { csrf: other.csrf },
    { csrf: csrf.slice(1) },
    { headers: { "x-csrf-token": [csrf, csrf] } }
  ].map((token) => ({ ...change, cookie, ...token }))
