import { permits } from "../../domain/OperatorRole.ts"
import type { OperatorRole } from "../../domain/OperatorRole.ts"

/* The navigation of the panel. */

interface Place {
  readonly title: string
  readonly path: string
  readonly role?: OperatorRole
}

const groups: ReadonlyArray<{ readonly name: string; readonly places: ReadonlyArray<Place> }> = [
  { name: "", places: [{ title: "Overview", path: "/ui/" }] },
  {
    name: "Certificates",
    places: [
      { title: "Certificates", path: "/ui/certificates" },
      { title: "Orders", path: "/ui/orders" },
      { title: "Expiring", path: "/ui/expiring" },
      { title: "Campaigns", path: "/ui/campaigns" },
      { title: "Accounts", path: "/ui/accounts" },
      { title: "EAB credentials", path: "/ui/eab" },
      { title: "Upstream orders", path: "/ui/upstream-orders" }
    ]
  },
  {
    name: "Service",
    places: [
      { title: "Jobs", path: "/ui/jobs" },
      { title: "Notifications", path: "/ui/notifications" },
      { title: "Workers", path: "/ui/workers" },
      { title: "Authorities", path: "/ui/authorities" },
      { title: "Profiles", path: "/ui/profiles" },
      { title: "Configuration", path: "/ui/configuration" },
      { title: "Nonces", path: "/ui/nonces" }
    ]
  },
  {
    name: "Oversight",
    places: [
      { title: "Audit trail", path: "/ui/audit" },
      { title: "Operators", path: "/ui/operators", role: "admin" }
    ]
  }
]

const isAt = (place: string, path: string): boolean =>
  place === "/ui/" ? path === place : path === place || path.startsWith(`${place}/`)

/**
 * Returns the navigation entries that a role may see. `isCurrent` marks the entry of the section to which `path`
 * belongs.
 */
export const placesFor = (role: OperatorRole, path: string) =>
  groups.map(({ name, places }) => ({
    name,
    places: places.filter((place) => place.role === undefined || permits(role, place.role)).map((place) => ({
      title: place.title,
      path: place.path,
      isCurrent: isAt(place.path, path)
    }))
  }))
