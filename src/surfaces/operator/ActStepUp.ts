import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { stepUp } from "../../operations/operator/identity/StepUp.ts"
import type { AnyAct } from "./Act.ts"
import { ActingSession, Asking, Configured } from "./Acting.ts"

/** Compares the caller's password before an act that needs it (docs/decisions/admin.md, "Operators"). */
export const steppedUp = (
  { http }: Pick<AnyAct<never>, "http">,
  { password }: { readonly password?: unknown }
) =>
  Effect.gen(function*() {
    if (http?.isStepUp !== true) return
    const { admin } = yield* Configured.config
    yield* stepUp(admin, yield* ActingSession, Redacted.make(String(password)), yield* Asking.requester)
  })

/** What the comparison needs. */
export type StepUpServices = Effect.Services<ReturnType<typeof steppedUp>>
