/* The intended differences from the recordings. Those that users notice are also in the changelog. */

/** Plays whose answers differ from the recordings, and why the new answers are right. */
export interface Decided {
  /** Matches the plays in the form `<group>: <name>`, in which a difference is printed. */
  readonly plays: RegExp
  readonly reason: string
}

/**
 * The nouns whose acts are declared once (docs/contribute/decisions/acts.md). The acts of other nouns answer as
 * recorded.
 */
const acts =
  "(?:nonces|credentials|accounts|session|jobs|workers|orders|expiring|upstream|certificates|audit|notifications|operators|tokens)"

const every = (plays: string, reason: string): Decided => ({ plays: new RegExp(`^${acts}\\.${plays}`), reason })

/** Every intended difference. A difference that no longer occurs must be removed. */
export const decided: ReadonlyArray<Decided> = [
  {
    plays: /^audit\.(?:api: GET|cli: audit list|panel: GET \/ui\/audit)/,
    reason: "The trail has the event changes_lost."
  },
  {
    plays: /^service\.api: GET \/api\/openapi\.json/,
    reason: "The document is made from the acts: it says more of members, and which codes a route may answer."
  },
  {
    plays: /^service\.cli: (?:completions|man|help)/,
    reason: "Commands, flags and sentences are those of the acts."
  },
  {
    plays: /^service\.cli: worker list -- x$/,
    reason: "Words after -- are arguments, because an identifier may begin with a hyphen."
  },
  { plays: /^service\.cli: init: --help$/, reason: "The help names the TLS key and certificate." },
  {
    plays: /^(?:configuration|profiles|service)\.cli: (?:config|config check:|filter|filter show:|migrate:) --help$/,
    reason: "The help has plainer sentences."
  },
  every(
    "panel: POST .* with an unknown field$",
    "A field that is misspelt must not fall back to what counts without it."
  ),
  {
    plays: /^workers\.(?:cli: worker list: --json|api: GET \/api\/workers)/,
    reason: "A process names the background work that keeps failing in it."
  },
  every("panel: GET .* twice$", "Half of what is asked for is not an answer."),
  every("panel: GET .*/export \\?format=\"\"$", "A parameter that is blank counts as left out."),
  every(
    "panel: POST .* (?:without a body|with an empty body|absent)$",
    "A member that is missing is named in the same words everywhere."
  ),
  every(
    "(?:api|cli|panel): .*x{30}",
    "A text that is too long is refused with its bound, before it is looked for, and a word names its set."
  ),
  every("panel: POST .*=\" ?\"$", "A member that is missing is named in the same words everywhere."),
  every("cli: .*--help$", "The help has the sentences of the act."),
  every(
    "cli: (?:eab|account|order|upstream|admin(?: \\w+)*)$",
    "The commands of a group are listed in the order of its acts."
  ),
  every("cli: help ", "The help has the sentences of the act."),
  every("cli: .*--\\w+ \"bogus\"$", "A refusal on the command line names the flag."),
  every("(?:api|panel): .*profile=\"(?:closed|none|Default)\"$", "The profiles that are served are named."),
  { plays: /^[\w-]+\.(?:api|panel): .*"%FF" as written$/, reason: "Octets that are not UTF-8 are no text." },
  {
    plays: /^nonces\.(?:api|panel): POST .*(?:ttlSeconds=|fuzz 3$)/,
    reason: "One sentence and one bound for the age of a nonce."
  },
  {
    plays: /^credentials\.cli: eab create: --profile "(?:closed|none|Default)"/,
    reason: "No client could use a credential for a profile that is not served."
  },
  {
    plays: /^credentials\.panel: (?:GET \/ui\/eab |POST \/ui\/eab with GET$)/,
    reason: "A credential can be made with restrictions, and a row has one link, so that the page stays small."
  },
  {
    plays: /^credentials\.panel: POST \/ui\/eab (?:good|by |with a parameter|label=|profile=" other "$)/,
    reason: "Each client gets a whole text to copy."
  },
  { plays: /^credentials\.cli: eab create: --label "a\\u001bb"/, reason: "The character that nobody sees is named." },
  {
    plays: /^credentials\.api: POST \/api\/eab profile="(?: default )?"$/,
    reason: "Blanks around a name are no part of it; an empty one is refused with its bound."
  },
  {
    plays: /^credentials\.api: POST \/api\/eab profile=" "$/,
    reason: "Blanks around a name are no part of it; an empty one is refused with its bound."
  },
  {
    plays: /^audit\.cli: audit (?:list|export): --(?:account-id|order-id|since|until|actor-kind) "/,
    reason: "A refusal on the command line names the flag, and a value that is none is a wrong command line."
  },
  {
    plays: /^audit\.cli: audit export: --format (?:without a value|"(?:|xml|CSV)")$/,
    reason: "A word outside of its set ends with 3 for every flag."
  },
  { plays: /^audit\.cli: audit$/, reason: "The commands have the order of the API." },
  {
    plays: /^audit\.api: GET \/api\/audit(?:\/export)? fuzz (?:3|9|15|17|22|24|27|30)$/,
    reason: "Of several faults that of the first member is told, and an event is looked for last."
  },
  {
    plays: /^jobs\.cli: jobs (?:cancel|run-now): (?:--json|with nobody to ask, as an object)$/,
    reason: "A script is told what has become of the job."
  },
  { plays: /^jobs\.cli: jobs queue: --json$/, reason: "The command has the sums of the API." },
  {
    plays: /^jobs\.api: GET \/api\/jobs (?:\?kind="(?:bogus|SIGNER_ISSUE|%|%FF)"(?: as written)?|fuzz 14)$/,
    reason: "An empty list of a kind that is misspelt would read as if there were none."
  },
  {
    plays: /^jobs\.api: GET \/api\/jobs \?orderId="(?:01900003000070008000000000000005|x|%|%FF)"(?: as written)?$/,
    reason: "An id that no order can have is refused, as in every other list."
  },
  { plays: /^jobs\.cli: jobs list: --order-id "x"$/, reason: "A value that is none is a wrong command line." },
  {
    plays: /^jobs\.panel: GET \/ui\/jobs /,
    reason: "The page has the filter for an order, and refuses a kind that is none."
  },
  { plays: /^expiring\.cli: order expiring: /, reason: "A command that there was not." },
  { plays: /^notifications\.cli: (?:notify$|notify list: )/, reason: "A command that there was not." },
  {
    plays: /^notifications\.cli: notify test: (?:argument 1 "webhook" as an object|--json)$/,
    reason: "The command prints what the API answers."
  },
  {
    plays: /^notifications\.cli: notify test: argument 1 "a\\u001bb"(?: as an object)?$/,
    reason: "The character that nobody sees is named."
  },
  {
    plays:
      /^notifications\.api: POST \/api\/notify\/test (?:(?:target|profile)=" ?"|event=(?:" "|0|1\.5|true|\[\]|\{\})|fuzz (?:5|12))$/,
    reason: "A text that is empty is refused with its bound, and a word is refused with its set."
  },
  { plays: /^authorities\.api: GET \/api\/cas /, reason: "Every list has the same four members." },
  { plays: /^workers\.api: GET \/api\/workers /, reason: "Every list has the same four members." },
  {
    plays: /^credentials\.api: POST \/api\/eab fuzz (?:2|41)$/,
    reason: "Of two faults the one of the body is told, and of the body the first."
  },
  {
    plays: /^accounts\.api: GET \/api\/accounts(?:\/export)? fuzz (?:6|31)$/,
    reason: "Of two faults the one that is read first is told."
  },
  {
    plays: /^accounts\.cli: account list: --eab-kid "x"/,
    reason: "A value of a wrong form is a fault of the command line."
  },
  {
    plays: /^accounts\.(?:api: PATCH|cli: account update-contact:|panel: POST .*\/contact) .*contact(?:=| )/,
    reason: "A contact without a scheme is a mail address, and a refusal says which of the contacts is none."
  },
  {
    plays: /^accounts\.cli: account update-contact: good$/,
    reason: "A flag that was forgotten must not clear the contacts unasked."
  },
  {
    plays: /^accounts\.cli: account (?:update-contact|deactivate|delete): (?:--json|with nobody to ask, as an object)$/,
    reason: "Every command that answers something has --json."
  },
  {
    plays: /^accounts\.cli: account (?:deactivate|delete): (?:good|answered ".*"|-y|argument 1 ".*")$/,
    reason: "The sentence is made of what the act answers."
  },
  {
    plays: /^orders\.(?:api|panel): POST .*\/revoke (?:reason=|fuzz (?:29|38)$)/,
    reason: "A reason is a number or a name at every door, and one sentence says which there are."
  },
  {
    plays:
      /^(?:orders|expiring)\.api: GET \/api\/(?:orders\/export fuzz (?:19|27)|orphaned-certificates fuzz 16|expiring fuzz (?:7|19))$/,
    reason: "Of two faults the one that is read first is told."
  },
  {
    plays: /^orders\.cli: order (?:list|export): --account-id "x"$/,
    reason: "A value of a wrong form is a fault of the command line."
  },
  {
    plays:
      /^orders\.cli: order (?:list|export): --(?:status "VALID"|(?:since|until) "(?:yesterday|tomorrow|2027-02-30)")$/,
    reason: "A refusal names the flag, and a time is refused in one sentence everywhere."
  },
  {
    plays: /^orders\.cli: order export: --format (?:without a value|""|"xml"|"CSV")$/,
    reason: "A word outside of its set ends with 3, as everywhere."
  },
  {
    plays:
      /^(?:orders|certificates)\.cli: (?:order revoke|order delete|cert revoke|crl raise|crl revoke): (?:--json|with nobody to ask, as an object)$/,
    reason: "Every command that answers something has --json."
  },
  {
    plays: /^orders\.cli: order delete: (?:good|answered ".*"|-y|argument 1 ".*")$/,
    reason: "The sentence is made of what the act answers."
  },
  {
    plays: /^expiring\.cli: order list --expiring-in: (?:--expiring-in as an object|--json)$/,
    reason: "The members have the order that the API gives them."
  },
  {
    plays: /^upstream\.cli: upstream order show: (?:--json|argument 1 ".*" as an object)$/,
    reason: "The members have the order that the API gives them."
  },
  {
    plays: /^certificates\.cli: cert revoke: (?:an argument more|argument 1 ".*")$/,
    reason: "A value is not repeated; the refusal says which one it is."
  },
  {
    plays: /^expiring\.panel: GET \/ui\/expiring(?:\/export)? \?days="x"$/,
    reason: "A number is refused in one sentence everywhere."
  },
  {
    plays: /^configuration\.api: GET \/api\/config /,
    reason: "Every list has the same four members."
  },
  {
    plays: /^configuration\.(?:cli: config show: (?:good|--json|--profile.*)$|panel: GET \/ui\/configuration )/,
    reason: "The limits of a session of PostgreSQL have keys, and so have the waits of answers."
  },
  {
    plays: /^(?:configuration|service)\.(?:api|panel): GET .*"x{30}/,
    reason: "A text that is too long is refused with its bound, before it is looked for."
  },
  {
    plays: /^(?:configuration|service)\.panel: GET .* twice$/,
    reason: "Half of what is asked for is not an answer."
  },
  {
    plays: /^service\.panel: GET \/ui\/ \?(?:range|profile)=/,
    reason:
      "A range that is none is refused beside the rest of the page, and a profile that is none has no certificates."
  },
  {
    plays: /^operators\.api: GET \/api\/operators\/\{username\}\/sessions /,
    reason: "A session of another operator contains the name of that operator, as on the command line."
  },
  {
    plays:
      /^(?:operators\.api: POST .*\/totp\/reset username="bob"|operators\.panel: POST "\/ui\/operators\/bob\/reset-factor"|session\.api: DELETE \/api\/mfa\/totp |session\.panel: POST \/ui\/account\/factor\/disable by )/,
    reason: "What is not there has not to be removed, as with every other act that ends something."
  },
  { plays: /^(?:operators|tokens)\.api: POST .* role=" "$/, reason: "A word is quoted without the blanks around it." },
  {
    plays: /^(?:operators|session)\.(?:api|panel): POST .*\/contact contact="(?!x)/,
    reason: "One sentence for a mail address."
  },
  {
    plays:
      /^(?:tokens|operators)\.(?:api|panel): POST .*\/tokens (?:name="(?:a| ?")|expiresInDays=|allowedAddresses=|role="bogus")/,
    reason: "One sentence for each member of a token, and the code of a word that is not in its set."
  },
  {
    plays: /^tokens\.api: POST \/api\/tokens role(?: absent|=null)$/,
    reason: "A token for which no role is asked has the least, as on the command line."
  },
  {
    plays: /^tokens\.api: POST \/api\/tokens user=" ?"$/,
    reason: "An empty name is refused before anybody is looked for."
  },
  {
    plays: /^tokens\.api: (?:POST|GET) \/api\/tokens fuzz /,
    reason: "Of two faults the one that is read first is told."
  },
  {
    plays: /^operators\.panel: POST .*\/tokens\/[^/]*\/revoke password=/,
    reason: "To end the access of a program must be quick; a stolen session gains nothing by it."
  },
  {
    plays: /^(?:operators|tokens|session)\.cli: admin .*: (?:--json|with nobody to ask, as an object)$/,
    reason: "Every command that answers something has --json."
  },
  {
    plays: /^operators\.cli: admin user .*: (?:without argument 1|argument 1 ""(?: as an object)?)$/,
    reason: "An argument has the name of its member."
  },
  {
    plays: /^(?:operators|tokens)\.cli: .*: --role (?:without a value|"")$/,
    reason: "The help calls a word a word."
  },
  {
    plays: /^tokens\.cli: admin token create: --role "admin"$/,
    reason: "A refusal on the command line names the flag."
  },
  {
    plays: /^(?:operators|tokens)\.cli: admin .*: argument 1 "(?:No Ra|a\\u001bb)"/,
    reason: "A value of a wrong form is a fault of the command line."
  },
  {
    plays: /^operators\.cli: admin user (?:create|contact): --contact "/,
    reason: "A value of a wrong form is a fault of the command line."
  },
  {
    plays: /^operators\.cli: admin user list: --bogus/,
    reason: "The flags are in the order of the members."
  },
  { plays: /^tokens\.cli: admin token create: --allow "x"/, reason: "A refusal says which of the addresses is none." },
  { plays: /^scopes\./, reason: "Routes, commands and a form that there were not." },
  { plays: /^blocks\./, reason: "Routes, commands and forms that there were not." },
  { plays: /^trials\./, reason: "A route, a page and a form that there were not." },
  { plays: /^campaigns\./, reason: "Routes, commands and pages that there were not." },
  {
    plays: /^alike\.|^certificates\.(?:api|panel|cli: cert list)/,
    reason: "Routes, commands and pages that there were not."
  },
  { plays: /^(?:jobs\.cli: jobs|certificates\.cli: cert)$/, reason: "The group has one command more." },
  {
    plays:
      /^(?:orders|upstream|accounts)\.panel: (?:GET "?\/ui\/(?:orders|upstream-orders|accounts\/)|POST "\/ui\/(?:accounts|orders)\/\S+\/(?:delete|revoke)")/,
    reason: "Lists of orders begin with names, and the page of an order has its name as the title."
  },
  { plays: /^service\.cli: setup/, reason: "A command that there was not." },
  { plays: /^chain\./, reason: "A route, a command and a page that there were not." },
  { plays: /^audit\.panel: GET \/ui\/audit /, reason: "The page links to the page of the chain." },
  { plays: /^kinds\./, reason: "Routes, commands and pages that there were not." },
  {
    plays:
      /^(?:orders\.api: (?:GET \/api\/orders(?:\/export|\/\{id\})? |POST \/api\/orders\/\{id\}\/revoke |DELETE \/api\/orders\/\{id\} (?:with HEAD|fuzz 23)$)|accounts\.api: GET \/api\/accounts\/\{id\}\/orders |orders\.panel: GET \/ui\/orders\/export |orders\.cli: order (?:list|show|export): )/,
    reason: "An order has its kind of certificate."
  },
  {
    plays: /^expiring\.(?:api: GET \/api\/expiring|panel: GET \/ui\/expiring\/export |cli: order list --expiring-in: )/,
    reason: "A certificate that expires has its kind."
  },
  { plays: /^profiles\.cli: filter explain: /, reason: "A request has the kind of certificate of its order." },
  { plays: /^profiles\.panel: GET \/ui\/profiles /, reason: "Each profile links to its kinds of certificates." },
  { plays: /^service\.cli: (?:-h|--help)$/, reason: "There is a command for kinds of certificates." },
  {
    plays:
      /^credentials\.(?:api: (?:GET|DELETE) \/api\/eab\/\{kid\} with (?:PUT|OPTIONS)|cli: eab create: --bogus|panel: (?:GET|POST) "?\/ui\/eab\/[0-9a-f-]{36})/,
    reason: "A credential says what its accounts may ask for, and this can be changed."
  },
  { plays: /^certificates\.cli: crl list: /, reason: "The list of CAs says which of them issues." },
  { plays: /: GET \/(?:api\/cas|ui\/authorities) /, reason: "The list of CAs says which of them issues." },
  { plays: /^links\./, reason: "A command and pages that there were not." },
  {
    plays: /^certificates\.cli: ca(?: (?:list|show|init|csr|sign|import|rotate|retire|test-sign))?(?::|$)/,
    reason: "Commands that there were not."
  },
  { plays: /^service\.cli: (?:explain|guide|docs)(?: client)?(?::|$)/, reason: "Commands that there were not." },
  {
    plays: /^authorities\.(?:api: GET \/api\/cas\/\{issuer\}|panel: GET "?\/ui\/authorities\/[^/]+(?: |$|"))/,
    reason: "A route and a page that there were not."
  },
  {
    plays: /^expiring\.panel: GET "?\/ui\/expiring/,
    reason:
      "The account is no link, so that fifty rows fit into the weight of a page; the page of the order leads to it."
  },
  { plays: /^workers\.panel: GET \/ui\/workers whole/, reason: "The navigation leads to campaigns." },
  {
    plays: /^notifications\.(?:api|panel): POST .*\/test event="/,
    reason: "There are further events."
  },
  {
    plays:
      /^accounts\.(?:api: (?:(?:DELETE|GET|PATCH) \/api\/accounts|POST \/api\/accounts\/\{id\}\/deactivate )|panel: (?:GET|POST) "?\/ui\/accounts|cli: account (?:show|list|export|update-contact|deactivate): )/,
    reason: "An account says whether it is blocked, how much it has ordered lately, and for which names."
  },
  {
    plays: /^service\.panel: GET \/ui\/search /,
    reason: "The search finds contacts, addresses and the beginnings of serial numbers."
  },
  { plays: /^profiles\.panel: GET "?\/ui\/profiles/, reason: "Each profile has a page, where an order can be tried." },
  {
    plays:
      /\.panel: (?:GET|POST) .* (?:by a token|in upper case|with a slash behind it|with (?:GET|HEAD|POST|PUT|OPTIONS|DELETE|PATCH))$/,
    reason: "A page that is refused or does not exist says so in words, within the frame."
  },
  {
    plays:
      /\.panel: GET "?\/ui\/(?:static\/(?:none\.css|x|[0-9a-f-]{36})|(?:\w+\/)(?:[07]|x|%00|x{20,}|[0-9a-f-]{36}))(?:[/" ]|$|…)/,
    reason: "A page that does not exist says so in words, within the frame."
  },
  {
    plays:
      /\.panel: GET .* \?\w+="\\u0000"$|^credentials\.panel: GET \/ui\/eab\/export \?(?:status="bogus"|format="xml")$/,
    reason: "A page that is refused says so in words, within the frame."
  },
  {
    plays: /^(?:operators|session|tokens)\.panel: GET "?\/ui\/[^ ]* by \w+/,
    reason: "A page that the role does not permit says so in words, and who is signed in."
  },
  { plays: /^attention\./, reason: "A route and a command that there were not." },
  { plays: /\.panel: GET "?\/ui\/(?:\?[^"]*)?(?: |$|")/, reason: "The first page tells causes instead of counts." },
  { plays: /^compromise\./, reason: "A route, a command and a form that there were not." }
]
