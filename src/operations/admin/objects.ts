import type { Credential } from "../../subsystems/db/eabKeys.ts"

/** Records as operators see them: `--json` of the command line prints these objects (decisions/admin.md, "Objects"). */

/** RFC 3339, UTC, whole seconds. */
const time = (epochSeconds: number): string => new Date(epochSeconds * 1000).toISOString().replace(".000Z", "Z")

/** `{ [name]: value }`, or nothing: absent members are omitted. */
const member = <K extends string, V>(name: K, value: V | undefined): { readonly [_ in K]?: V } =>
  value === undefined ? {} : { [name]: value } as { readonly [_ in K]?: V }

/** An EAB credential; its secret is in no object but the one its creation answers. */
export const credentialObject = ({ accounts, createdAt, kid, label, profile, status }: Credential) => ({
  kid,
  ...member("label", label),
  ...member("profile", profile),
  status,
  createdAt: time(createdAt),
  accounts
})
