import type { Browser, Page } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo, DemoOperator } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import { totpNow } from "../support/Authenticator.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { builtServer } from "../support/Databases.ts"
import { pressTo } from "../support/Keyboard.ts"
import type { Fields, Ground } from "../support/PanelForms.ts"
import {
  bob,
  buttonOf,
  cora,
  fill,
  foldOf,
  formOf,
  forms,
  groundOf,
  linkForms,
  signInForms,
  unfold
} from "../support/PanelForms.ts"
import { patternOf, patternsOf } from "../support/PanelRoutes.ts"
import { qrTextOf } from "../support/Qr.ts"

/*
 * Every form of the panel that changes something, in a real browser. The gate runs it. The short run already fails if a
 * form has no case in `PanelForms.ts`.
 */

it("the test of the forms has a case for every form of the panel", () => {
  assert.deepStrictEqual([...Object.keys(forms), ...linkForms, ...signInForms].toSorted(), patternsOf("POST"))
})

/** Collects the paths to which a page sends forms. */
const postsOf = (page: Page): Array<string> => {
  const sent: Array<string> = []
  page.on("request", (request) => {
    if (request.method() === "POST") sent.push(new URL(request.url()).pathname)
  })
  return sent
}

describe("every form of the panel in a browser", () => {
  let demo: Demo
  let strict: Demo
  let browser: Browser
  let ground: Ground
  const windows: Array<Window> = []
  const open = async (options?: Parameters<typeof openWindow>[1]) => {
    const window = await openWindow(browser, options)
    windows.push(window)
    return window
  }
  const [ann, olga, viktor] = [operatorOf("admin"), operatorOf("operator"), operatorOf("viewer")]
  const says = (page: Page, text: string) => page.getByText(text).first().waitFor()
  const at = (page: Page, path: string) => page.goto(`${demo.url}${path}`)

  beforeAll(async () => {
    await builtServer()
    const attempts = "[admin]\nlogin_max_attempts = 1000\n"
    ;[browser, demo, strict] = await Promise.all([
      startBrowser(),
      startDemo({ toml: attempts }),
      startDemo({ state: "empty", toml: `${attempts}require_mfa = true\n` })
    ])
    await demo.enlist(bob)
    await demo.enlist(cora)
    const client = await demo.client("corp")
    await client.register()
    const { page } = await open()
    await signInAs(page, demo.url, ann)
    ground = groundOf(demo, client, page)
  })
  afterAll(async () => {
    for (const window of windows) await window.context.close()
    await browser?.close()
    await Promise.all([demo?.stop(), strict?.stop()])
  })

  /** Sessions that several windows share, because most forms are not about the sign-in, which is slow by design. */
  const sessions = new Map<DemoOperator, Awaited<ReturnType<Window["context"]["cookies"]>>>()

  /** Opens a window for the operator who fills in a form, and returns the operator as well. */
  const windowFor = async (isOwn = false) => {
    ground.write(
      "UPDATE admin_users SET totp_secret = NULL, totp_pending_secret = NULL, status = 'active' WHERE username = 'cora'"
    )
    // One session serves many forms, and each form gets a wrong password once. The fifth wrong password would end the
    // session.
    ground.write("UPDATE admin_sessions SET mfa_attempts = 0")
    const [window, operator] = [await open(), isOwn ? cora : ann]
    await window.context.addCookies(sessions.get(operator) ?? [])
    // Some of the forms end the session, so the test signs in again.
    const answer = await window.page.request.get(`${demo.url}/ui/account`, { maxRedirects: 0 })
    if (answer.status() !== 200) await signInAs(window.page, demo.url, operator)
    sessions.set(operator, await window.context.cookies())
    return window
  }

  it.each(Object.entries(forms))(
    "can be cancelled and refused, needs its script, and is sent once by a double click: %s",
    async (
      pattern,
      { badly, code = "csrf_failed", isMade = false, isOwn, lead, page: pathFor, says: said, well = {} }
    ) => {
      const { close, context, page } = await windowFor(isOwn)
      const path = await pathFor(ground)
      const posted = postsOf(page)
      const ofForm = () => posted.filter((one) => patternOf(one) === pattern)
      const reach = async () => {
        await at(page, path)
        await lead?.(page)
        return unfold(await formOf(page, pattern))
      }
      const filled = async (): Promise<Fields> => typeof well === "function" ? well(page) : well

      const declined = await reach()
      const before = ground.records()
      const [fold, keep] = [foldOf(declined), declined.getByText("Keep it")]
      await fill(declined, await filled())
      if (await keep.count() > 0) await keep.click()
      else if (await fold.count() > 0) await fold.click()
      if (await keep.count() + await fold.count() > 0) await declined.waitFor({ state: "hidden" })
      assert.deepStrictEqual(ofForm(), [])
      assert.strictEqual(ground.records(), before)

      const refused = await reach()
      const unchanged = ground.records()
      if (badly === undefined) {
        await page.evaluate(`document.body.setAttribute("hx-headers", '{"X-CSRF-Token":"another"}')`)
      }
      await fill(refused, { ...await filled(), ...badly })
      await buttonOf(refused).click()
      await refused.locator(".refusal code", { hasText: code }).waitFor()
      assert.strictEqual(ground.records(), unchanged)

      if (!isMade) {
        const plain = await open({ hasScripts: false })
        await plain.context.addCookies(await context.cookies())
        await at(plain.page, path)
        await lead?.(plain.page)
        const bare = await unfold(await formOf(plain.page, pattern))
        await fill(bare, await filled())
        await buttonOf(bare).click()
        await says(plain.page, "has to be loaded again")
        assert.strictEqual(new URL(plain.page.url()).search, "", "what is typed gets into no URL")
        assert.strictEqual(ground.records(), unchanged)
        await plain.close()
      }

      const done = await reach()
      await fill(done, await filled())
      posted.length = 0
      await buttonOf(done).dblclick()
      await says(page, said)
      assert.lengthOf(ofForm(), 1)
      await close()
    }
  )

  it("works without scripts in a sign-in that demands the set-up of a second factor", async () => {
    const { close, page } = await open({ hasScripts: false })
    const posted = postsOf(page)
    const press = async (pattern: string, fields: Fields = {}) => {
      const form = await formOf(page, pattern)
      await fill(form, fields)
      await buttonOf(form).click()
    }
    await page.goto(`${strict.url}/ui/jobs?status=failed`)
    await press("/ui/login", { username: olga.username, password: "not the password" })
    await says(page, "invalid_credentials")
    await press("/ui/login", { username: olga.username, password: olga.password })
    await says(page, "This service asks every operator for a second factor.")
    await press("/ui/login/abandon")
    await page.waitForURL("**/ui/login")
    await page.goto(`${strict.url}/ui/jobs?status=failed`)
    await press("/ui/login", { username: olga.username, password: olga.password })
    await press("/ui/login/enrol")
    await page.waitForSelector("svg.qr")
    const uri = new URL(await qrTextOf(await page.locator("svg.qr").screenshot()))
    const secret = uri.searchParams.get("secret") ?? ""
    assert.strictEqual(secret, (await page.locator(".key code").innerText()).replaceAll(" ", ""))
    await press("/ui/login/enrol/confirm", { code: "000000" })
    await says(page, "invalid_credentials")
    // The key is shown once, and neither with the refusal nor when the page is loaded again.
    assert.strictEqual(await page.locator("svg.qr, .key").count(), 0)
    await press("/ui/login/enrol/confirm", { code: totpNow(secret) })
    await says(page, "They are shown once.")
    const codes = await page.locator("ul.codes li").allInnerTexts()
    assert.lengthOf(codes, 10)
    await page.click("text=I have them")
    await page.waitForURL("**/ui/jobs?status=failed")
    // The browser has not stored the answer to the form, and does not send the form again by itself.
    await page.goBack().catch((error: Error) => assert.include(error.message, "ERR_CACHE_MISS"))
    await page.waitForURL("chrome-error://**")

    const second = await open()
    await signInAs(second.page, strict.url, olga)
    const verify = await formOf(second.page, "/ui/login/verify")
    const secondPosts = postsOf(second.page)
    await fill(verify, { code: "000000" })
    await buttonOf(verify).click()
    await says(second.page, "invalid_credentials")
    await fill(await formOf(second.page, "/ui/login/verify"), { code: codes[0] ?? "" })
    // A second request would find the code used up.
    await buttonOf(await formOf(second.page, "/ui/login/verify")).dblclick()
    await second.page.waitForURL("**/ui/")
    assert.lengthOf(secondPosts, 2)
    await second.close()
    assert.sameMembers([...new Set([...posted, ...secondPosts])], [...signInForms])
    await close()
  })

  it("signs an operator in only once after a double click", async () => {
    const { close, page } = await open()
    await page.goto(`${demo.url}/ui/login`)
    const posted = postsOf(page)
    await fill(page.locator("form"), { username: viktor.username, password: viktor.password })
    await buttonOf(page.locator("form")).dblclick()
    await page.waitForURL("**/ui/")
    assert.deepStrictEqual(posted, ["/ui/login"])
    await close()
  })

  /** The act that comes first, the form on a page that was loaded before, and the words of that page afterwards. */
  const conflicts: ReadonlyArray<{
    readonly form: string
    readonly isOwn?: boolean
    readonly ready: () => Promise<{ readonly path: string; readonly meanwhile?: () => Promise<void> | void }>
    /** The form that is sent in the other tab, by default the same form. */
    readonly first?: string
    readonly fields?: Fields
    readonly code: string
    readonly now: string
  }> = [
    {
      form: "/ui/jobs/{id}/cancel",
      ready: async () => ({ path: ground.job() }),
      code: "job_not_cancellable",
      now: "The job is cancelled; only one that is ready or failed"
    },
    {
      form: "/ui/jobs/{id}/run",
      first: "/ui/jobs/{id}/cancel",
      ready: async () => ({ path: ground.job() }),
      code: "job_not_runnable",
      now: "The job is cancelled; only one that is ready or failed"
    },
    {
      form: "/ui/notifications/run",
      ready: async () => {
        const all = "WHERE kind = 'notify_deliver' AND status <> 'done'"
        ground.write(`UPDATE jobs SET status = 'failed' ${all}`)
        return {
          path: "/ui/notifications",
          meanwhile: () => ground.write(`UPDATE jobs SET status = 'cancelled' ${all}`)
        }
      },
      code: "job_not_runnable",
      now: "cancelled"
    },
    {
      form: "/ui/orders/{id}/revoke",
      ready: async () => ({ path: await ground.issued() }),
      code: "already_revoked",
      now: "The certificate is revoked already."
    },
    {
      form: "/ui/orders/{id}/delete",
      ready: async () => {
        const { complete, path } = await ground.pending()
        return { path, meanwhile: complete }
      },
      code: "live_certificates",
      now: "The order cannot be deleted while its certificate can still be used"
    },
    {
      form: "/ui/accounts/{id}/delete",
      ready: async () => {
        const { issue, path } = await ground.account()
        return { path, meanwhile: issue }
      },
      code: "live_certificates",
      now: "The account cannot be deleted while it holds 1 live certificate"
    },
    {
      form: "/ui/eab/{kid}/delete",
      fields: { accounts: "delete" },
      ready: async () => {
        const [path, account] = [await ground.credential(), await ground.account()]
        ground.bind(path, account.path)
        return { path, meanwhile: account.issue }
      },
      code: "live_certificates",
      now: "Live certificates 1"
    },
    {
      form: "/ui/account/factor/codes",
      first: "/ui/account/factor/disable",
      isOwn: true,
      fields: { password: cora.password },
      ready: async () => {
        ground.write("UPDATE admin_users SET totp_secret = zeroblob(20) WHERE username = 'cora'")
        return { path: "/ui/account" }
      },
      code: "mfa_not_enrolled",
      now: "Set up an authenticator…"
    },
    ...["/ui/account", "/ui/operators/bob"].map((path) => ({
      form: path === "/ui/account" ? "/ui/account/tokens" : "/ui/operators/{username}/tokens",
      isOwn: path === "/ui/account",
      fields: {
        name: "twice",
        role: "viewer",
        expiresInDays: "30",
        password: path === "/ui/account" ? cora.password : ann.password
      },
      ready: async () => {
        ground.write("DELETE FROM api_tokens")
        return { path }
      },
      code: "name_taken",
      now: "twice"
    }))
  ]

  it.each(conflicts)(
    "shows its refusal on the page as another tab has changed it: $form",
    async ({ code, fields = {}, first, form: pattern, isOwn, now, ready }) => {
      const { close, context, page } = await windowFor(isOwn)
      const { meanwhile, path } = await ready()
      const other = await context.newPage()
      await at(page, path)
      await at(other, path)
      const late = await unfold(await formOf(page, pattern))
      await fill(late, fields)
      if (meanwhile === undefined) {
        const early = await unfold(await formOf(other, first ?? pattern))
        await fill(early, fields)
        await Promise.all([
          other.waitForResponse((answer) => answer.request().method() === "POST"),
          buttonOf(early).click()
        ])
      } else await meanwhile()
      const [answer] = await Promise.all([
        page.waitForResponse((one) => one.request().method() === "POST"),
        buttonOf(late).click()
      ])
      assert.strictEqual(answer.status(), 409)
      await page.waitForSelector("main > .notice[role=alert]:focus")
      const [card = ""] = await page.locator("main").allInnerTexts()
      assert.include(card, code)
      assert.include(card.replaceAll(/\s+/g, " "), now)
      // The page is like any other. It can be reloaded, and its forms can be sent.
      assert.strictEqual(new URL(page.url()).pathname, path)
      assert.strictEqual(await page.locator("main").count(), 1)
      if (code === "name_taken") {
        const again = await formOf(page, pattern)
        assert.isTrue(await again.isVisible(), "what was typed stays")
        await fill(again, { name: "once" })
        await buttonOf(again).click()
        await says(page, "It is not shown again.")
      }
      await close()
    }
  )

  it("sends an operator who signed out in another tab to the sign-in, and from there back to its page", async () => {
    const { close, context, page } = await windowFor()
    const { path } = await ground.account()
    const other = await context.newPage()
    await at(other, "/ui/orders")
    await at(page, path)
    const form = await unfold(await formOf(page, "/ui/accounts/{id}/contact"))
    await fill(form, { contact: "half@corp.example" })
    const out = await formOf(other, "/ui/logout")
    await buttonOf(await unfold(out)).click()
    await other.waitForURL("**/ui/login?why=out")
    const before = ground.records()
    await buttonOf(form).click()
    await page.waitForURL("**/ui/login?next=**")
    assert.strictEqual(ground.records(), before)
    // The fields of a form that was not sent are not in the URL, and after going back the page has none of them.
    assert.notInclude(page.url(), "half")
    await fill(page.locator("form"), { username: ann.username, password: ann.password })
    await buttonOf(page.locator("form")).click()
    await page.waitForURL(`**${path}`)
    assert.notInclude(await page.locator("main").innerText(), "half@corp.example")
    await close()
  })

  it("explains what to do if its tab belongs to an earlier sign-in", async () => {
    const { close, context, page } = await windowFor()
    const { path } = await ground.account()
    const other = await context.newPage()
    await at(page, path)
    await context.clearCookies()
    await signInAs(other, demo.url, ann)
    const form = await unfold(await formOf(page, "/ui/accounts/{id}/deactivate"))
    await buttonOf(form).click()
    await form.getByText("has to be loaded again").waitFor()
    const out = await unfold(await formOf(page, "/ui/logout"))
    await buttonOf(out).click()
    await out.getByText("csrf_failed").waitFor()
    await page.reload()
    await buttonOf(await unfold(await formOf(page, "/ui/accounts/{id}/deactivate"))).click()
    await says(page, "The account is deactivated.")
    await close()
  })

  it.each(["done", "gone"])("is on a card that refreshes until the job is %s and can no longer change", async (end) => {
    const { close, page } = await windowFor()
    const path = ground.job()
    const polls: Array<string> = []
    page.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url())
      if (pathname === path && searchParams.has("poll")) polls.push(request.headers()["x-panel-refresh"] ?? "")
    })
    // The clock of the page advances only when the test says so, so that no poll comes by itself, however long the test
    // takes.
    await page.clock.install({ time: 0 })
    await page.clock.pauseAt(1000)
    await at(page, path)
    /** Lets time pass until the next poll. The page starts its timer only after it has read the previous answer. */
    const polled = async () => {
      const waiting = { isOver: false }
      const answered = page.waitForResponse((answer) => answer.url().includes("poll="))
        .finally(() => waiting.isOver = true)
      while (!waiting.isOver) await page.clock.runFor(100)
      return answered
    }
    for (const _ of [1, 2]) assert.strictEqual((await polled()).status(), 204)
    if (end === "gone") ground.write("DELETE FROM jobs WHERE id = unhex(?)", path.slice(9).replaceAll("-", ""))
    else {
      const other = await windowFor()
      await at(other.page, path)
      await buttonOf(await unfold(await formOf(other.page, "/ui/jobs/{id}/cancel"))).click()
      await says(other.page, "The job is cancelled.")
      await other.close()
    }
    assert.strictEqual((await polled()).status(), end === "gone" ? 404 : 200)
    await page.waitForSelector(end === "gone" ? "[data-again]:not([hidden])" : "#job b:has-text('cancelled')")
    assert.deepStrictEqual(polls, ["1", "1", "1"])
    await page.clock.runFor(3_600_000)
    assert.lengthOf(polls, 3)
    await close()
  })

  it("keeps its card from being replaced while a confirmation is open or a field has the focus", async () => {
    const { close, page } = await windowFor()
    const path = ground.job()
    await page.clock.install()
    await at(page, path)
    await page.evaluate("document.querySelector('#job').append(document.querySelector('details.confirm'))")
    await unfold(await formOf(page, "/ui/jobs/{id}/cancel"))
    ground.write("UPDATE jobs SET status = 'failed' WHERE id = unhex(?)", path.slice(9).replaceAll("-", ""))
    const polled = () => page.waitForResponse((answer) => answer.url().includes("poll="))
    await Promise.all([polled(), page.clock.runFor(2000)])
    await Promise.all([polled(), page.clock.runFor(2000)])
    assert.isTrue(await (await formOf(page, "/ui/jobs/{id}/cancel")).isVisible())
    await foldOf(await formOf(page, "/ui/jobs/{id}/cancel")).click()
    await Promise.all([polled(), page.clock.runFor(2000)])
    await page.waitForSelector("#job b:has-text('failed')")
    await close()
  })

  it("lets an operator revoke an order and sign out with only the keyboard", async () => {
    const path = await ground.issued()
    const { close, page } = await open()
    const tabTo = (selector: string) => pressTo(page, selector)
    await at(page, path)
    await page.waitForSelector("[name=username]:focus")
    await page.keyboard.type(ann.username)
    await page.keyboard.press("Tab")
    await page.keyboard.type(ann.password)
    await page.keyboard.press("Enter")
    await page.waitForURL(`**${path}`)
    await tabTo("details.confirm > summary")
    await page.keyboard.press("Enter")
    await tabTo("[name=reason]")
    await page.keyboard.type("superseded")
    await tabTo("button.danger")
    await page.keyboard.press("Enter")
    await says(page, "The certificate is revoked.")
    await says(page, "reason superseded (4)")
    await tabTo(".menu > summary")
    await page.keyboard.press("Enter")
    await tabTo(".menu button[type=submit]")
    await page.keyboard.press("Enter")
    await page.waitForURL("**/ui/login?why=out")
    await close()
  })
})
