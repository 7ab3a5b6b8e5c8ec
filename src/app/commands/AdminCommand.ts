import { Passwords } from "../../services/operators/Passwords.ts"
import { operatorActs } from "../../surfaces/operator/acts/OperatorActs.ts"
import { tokenActs } from "../../surfaces/operator/acts/TokenActs.ts"
import { actCommand } from "./ActCommand.ts"

const hashing = Passwords.layer()

/** `admin`: operators, their sessions and their tokens. */
export const adminCommand = actCommand<Passwords>(
  operatorActs,
  "admin",
  { admin: [actCommand(tokenActs, "admin token")] },
  {
    "admin user create": hashing,
    "admin user passwd": hashing,
    "admin user totp recovery-codes": hashing
  }
)
