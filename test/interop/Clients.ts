import type { Client } from "./Client.ts"
import { acmeTiny } from "./clients/AcmeTiny.ts"
import { apache } from "./clients/Apache.ts"
import { caddy } from "./clients/Caddy.ts"
import { certbot, certbot1 } from "./clients/Certbot.ts"
import { dehydrated } from "./clients/Dehydrated.ts"
import { autocert, certmagic } from "./clients/Go.ts"
import { lego } from "./clients/Lego.ts"
import { pythonAcme } from "./clients/PythonAcme.ts"
import { rubyAcmeClient } from "./clients/RubyAcmeClient.ts"
import { uacme } from "./clients/Uacme.ts"

/** The clients of the run; those that take longest first. */
export const clients: ReadonlyArray<Client> = [
  dehydrated,
  certbot,
  certbot1,
  apache,
  certmagic,
  autocert,
  rubyAcmeClient,
  lego,
  uacme,
  pythonAcme,
  acmeTiny,
  caddy
]
