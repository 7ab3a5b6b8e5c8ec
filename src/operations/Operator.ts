/** Who acts for the organisation: a person at the command line or in the panel. `id` is a claim, not a proof. */
export interface Operator {
  readonly kind: "cli" | "admin"
  readonly id: string | undefined
}

/** An operator at the command line. */
export interface AtKeyboard extends Operator {
  readonly kind: "cli"
}

/** The operator as an audit row names it. */
export type Actor = ReturnType<typeof actorOf<Operator>>

/** See {@link Actor}. */
export const actorOf = <O extends Operator>({ id, kind }: O) => ({ actorKind: kind, actorId: id })
