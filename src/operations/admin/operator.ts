/** Who acts for the organisation: a person at the command line or in the panel. `id` is a claim, not a proof. */
export interface Operator {
  readonly kind: "cli" | "admin"
  readonly id: string | undefined
}

/** The operator as an audit row names it. */
export const actorOf = ({ id, kind }: Operator) => ({ actorKind: kind, actorId: id })
