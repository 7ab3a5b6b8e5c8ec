// The panel's own script: copy buttons, local times, the theme, and fragments that ask for themselves again.
"use strict"
;(() => {
  // htmx asks this service alone, evaluates nothing, stores no page, and shows refusals where they belong.
  if (globalThis.htmx) {
    Object.assign(htmx.config, {
      allowEval: false,
      allowScriptTags: false,
      selfRequestsOnly: true,
      includeIndicatorStyles: false,
      historyCacheSize: 0,
      refreshOnHistoryMiss: true,
      responseHandling: [
        { code: "204", swap: false },
        { code: "[23]..", swap: true },
        { code: "[45]..", swap: true, error: true }
      ]
    })
  }

  const said = (text) => {
    const region = document.getElementById("said")
    if (region) region.textContent = text
  }

  // What the reader has chosen. Where nothing can be stored, a choice lasts as long as the page.
  const choices = new Map()
  const kept = (name) => {
    try {
      return localStorage.getItem(name) ?? choices.get(name)
    } catch {
      return choices.get(name)
    }
  }
  const keep = (name, value) => {
    choices.set(name, value)
    try {
      localStorage.setItem(name, value)
    } catch { /* the choice is in the map */ }
  }

  // What a reader can choose from, the default first. The style knows a choice by an attribute of the document.
  const offered = { theme: ["system", "light", "dark"], rows: ["roomy", "compact"], zone: ["UTC", "local"] }
  const chosen = (name) => offered[name].includes(kept(name)) ? kept(name) : offered[name][0]
  const show = (name) => {
    document.documentElement.dataset[name] = chosen(name)
    for (const button of document.querySelectorAll(`[data-choice=${name}] span`)) button.textContent = chosen(name)
    if (name === "zone") { for (const time of document.querySelectorAll("time")) tell(time) }
  }
  const chooseNext = (name) => {
    const all = offered[name]
    keep(name, all[(all.indexOf(chosen(name)) + 1) % all.length])
    show(name)
  }

  // A table that is wider than its box is scrolled by the keyboard too.
  const reach = (root) => {
    for (const box of root.querySelectorAll(".box, pre")) {
      if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0
      else box.removeAttribute("tabindex")
    }
  }

  // How long ago a time is, or how long until then.
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]]
  const words = new Intl.RelativeTimeFormat("en")
  const ago = (seconds) => {
    const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? units[3]
    return Math.abs(seconds) < 5 ? "now" : words.format(Math.trunc(seconds / size), unit)
  }
  // Times are in UTC, or in the zone of this machine if the reader has chosen so.
  const isLocal = () => chosen("zone") === "local"
  const two = (number) => String(number).padStart(2, "0")
  const absolute = (at) => {
    const minutes = isLocal() ? -at.getTimezoneOffset() : 0
    const text = new Date(at.getTime() + minutes * 60_000).toISOString().slice(0, 19).replace("T", " ")
    const far = Math.abs(minutes)
    return isLocal() ? `${text} ${minutes < 0 ? "-" : "+"}${two(Math.floor(far / 60))}:${two(far % 60)}` : `${text} UTC`
  }
  // A time is told relative to now, with the absolute one on hover. A fact shows both.
  const tell = (time) => {
    const text = time.getAttribute("datetime") ?? time.textContent
    const at = new Date(text.replace(" ", "T"))
    if (Number.isNaN(at.getTime())) return
    time.dateTime = text.replace(" ", "T")
    time.title = absolute(at)
    const beside = time.querySelector(".abs")
    if (beside !== null) beside.textContent = absolute(at)
    else time.textContent = time.className === "at" ? absolute(at) : ago((at.getTime() - Date.now()) / 1000)
  }

  // The link of a record shows the whole id on hover, and can be copied.
  const copiable = (link) => {
    const id = decodeURIComponent(link.pathname.split("/").at(-1))
    if (link.title === id || link.textContent === id || link.search !== "") return
    if (link.querySelector("bdi") === null) link.title = id
    const button = document.createElement("button")
    Object.assign(button, { type: "button", className: "copy", title: "Copy the id" })
    button.dataset.copy = id
    link.after(button)
  }

  // The rows of a list that can be chosen get tick boxes, and the button says how many are ticked.
  const ticking = (form) => {
    const [bulk, head] = [form.querySelector(".bulk"), document.createElement("th")]
    const [button, boxes] = [bulk.firstChild, []]
    const boxIn = (cell, label) => {
      const box = document.createElement("input")
      box.type = "checkbox"
      box.ariaLabel = label
      cell.append(box)
      return box
    }
    head.className = "tick"
    const every = boxIn(head, "Every certificate of this page")
    form.querySelector("thead tr").prepend(head)
    for (const row of form.querySelectorAll("tbody tr")) {
      const [link, cell] = [row.querySelector("a"), document.createElement("td")]
      cell.className = "tick"
      if (row.querySelector(".off-state") === null) {
        const box = boxIn(cell, link.innerText)
        box.name = "order"
        box.value = link.pathname.split("/").at(-1)
        boxes.push(box)
      }
      row.prepend(cell)
    }
    const count = () => {
      const ticked = boxes.filter((box) => box.checked).length
      every.checked = ticked > 0 && ticked === boxes.length
      every.indeterminate = ticked > 0 && ticked < boxes.length
      button.disabled = ticked === 0
      button.textContent = ticked === 0 ? "Tick what to revoke" : `Revoke ${ticked}…`
    }
    bulk.hidden = boxes.length === 0
    form.addEventListener("change", ({ target }) => {
      if (target === every) { for (const box of boxes) box.checked = every.checked }
      count()
    })
    count()
  }

  // What a page without this script does not show.
  const dress = (root) => {
    for (
      const button of root.querySelectorAll(
        "[data-copy], [data-choice]"
      )
    ) {
      button.hidden = false
    }
    for (const time of root.querySelectorAll("time")) tell(time)
    for (const link of root.querySelectorAll(".list td:first-child > a, a.id")) copiable(link)
    for (const form of root.querySelectorAll("form.ticking")) ticking(form)
    reach(root)
    for (const polled of root.querySelectorAll("[data-poll]")) wait(polled)
    for (const box of root.querySelectorAll("[data-within]")) searchWithin(box)
    for (const part of root.querySelectorAll("[data-dismiss]")) dismissible(part)
    if (root.dataset?.poll) wait(root)
  }

  // A part of a page that this browser need not show again.
  const dismissible = (part) => {
    const name = `dismissed-${part.dataset.dismiss}`
    if (kept(name) === "1") return void (part.hidden = true)
    const button = part.querySelector("[data-dismiss-now]")
    button.hidden = false
    button.addEventListener("click", () => {
      keep(name, "1")
      part.hidden = true
    })
  }

  // Rows of a long page that have every word of a text; sections without any are hidden with their headings.
  const narrowTo = (text, place, count) => {
    const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "")
    let shown = 0
    for (const part of place.querySelectorAll("[data-part]")) {
      let some = false
      const section = part.querySelector("th").textContent.replace(/[[\]]/g, "")
      for (const row of part.querySelectorAll("tr:not(:first-child)")) {
        const text = `${section}.${row.textContent}`.toLowerCase()
        const has = words.every((word) => text.includes(word))
        row.hidden = !has
        if (has) shown++
        some ||= has
      }
      part.hidden = !some
    }
    count.textContent = words.length === 0 ? "" : shown === 0 ? "No key has this." : `${shown} found`
  }
  const searchWithin = (box) => {
    const place = document.getElementById(box.dataset.within)
    if (place === null) return
    box.hidden = false
    const [input, count] = [box.querySelector("input"), box.querySelector("[role=status]")]
    input.addEventListener("input", () => narrowTo(input.value, place, count))
    if (input.value !== "") narrowTo(input.value, place, count)
  }

  const copy = async (button) => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy)
    } catch {
      const field = document.createElement("textarea")
      field.value = button.dataset.copy
      field.className = "off"
      document.body.append(field)
      field.select()
      document.execCommand("copy")
      field.remove()
      button.focus()
    }
    button.classList.add("copied")
    setTimeout(() => button.classList.remove("copied"), 1500)
    said("Copied")
  }

  // A fragment is left alone while somebody is about to confirm something in it, or types in it.
  const isBusy = (element) =>
    element.querySelector("details.confirm[open]") !== null ||
    (element.contains(document.activeElement) && document.activeElement.matches("input, select, textarea"))

  const polls = 210
  const steadySeconds = 15
  const paceOf = (count) => count <= 30 ? 2 : 10
  const offerAgain = (element) => {
    for (const button of element.querySelectorAll("[data-again]")) button.hidden = false
  }
  // Nothing has changed: the same fragment asks once more.
  const counted = (url) => {
    const next = new URL(url, location.href)
    const before = Number(next.searchParams.get("poll"))
    if (before === 0) return { url, seconds: steadySeconds }
    const count = before + 1
    next.searchParams.set("poll", String(count))
    return count > polls ? undefined : { url: next.pathname + next.search, seconds: paceOf(count) }
  }
  const wait = (element) => {
    if (element.dataset.polling === "1") return
    element.dataset.polling = "1"
    const ask = async (url) => {
      if (!element.isConnected) return
      const again = () => {
        const next = counted(url)
        if (next === undefined) offerAgain(element)
        else setTimeout(ask, next.seconds * 1000, next.url)
      }
      if (document.hidden) return void document.addEventListener("visibilitychange", () => ask(url), { once: true })
      let answer
      try {
        answer = await fetch(url, {
          headers: { "HX-Request": "true", "X-Panel-Refresh": "1" },
          credentials: "same-origin",
          redirect: "error"
        })
      } catch {
        return again()
      }
      if (answer.status === 204 || answer.status >= 500 || answer.status === 429) return again()
      if (!answer.ok) return offerAgain(element)
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html")
      const parts = Array.from(fresh.body.children)
      for (const part of parts) {
        const old = part.id === "" ? null : document.getElementById(part.id)
        if (old === null) continue
        if (isBusy(old)) {
          if (old === element) again()
          continue
        }
        const adopted = document.adoptNode(part)
        const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null
        old.replaceWith(adopted)
        if (focused !== null) adopted.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus()
        globalThis.htmx?.process(adopted)
        dress(adopted)
      }
    }
    setTimeout(ask, Number(element.dataset.pollSeconds) * 1000, element.dataset.poll)
  }

  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element
      ? event.target.closest("[data-copy], [data-choice]")
      : null
    if (button === null) {
      for (const menu of document.querySelectorAll("details.menu[open]")) {
        if (!menu.contains(event.target)) menu.open = false
      }
    } else if (button.dataset.copy !== undefined) void copy(button)
    else chooseNext(button.dataset.choice)
  })
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false
  })
  // A form that changes something is sent once, however often its button is pressed.
  const sent = new WeakSet()
  const patience = 10_000
  document.addEventListener("submit", (event) => {
    const form = event.target
    if (!form.matches("[hx-post], [method=post]")) return
    if (sent.has(form)) {
      event.preventDefault()
      return void event.stopImmediatePropagation()
    }
    sent.add(form)
    // The answer to a plain form is another page. Whoever has stopped it from loading can send the form again.
    if (!form.matches("[hx-post]")) setTimeout(() => sent.delete(form), patience)
  }, true)
  document.addEventListener("htmx:afterRequest", ({ detail: { elt, xhr } }) => {
    // A window that is on its way to another page has nothing more to send.
    if (!xhr.getResponseHeader("HX-Redirect")) sent.delete(elt)
  })
  document.addEventListener("htmx:afterSettle", (event) => dress(event.detail.elt))
  // A refusal is read out where it appears, and its form can be sent again.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.classList?.contains("refusal")) event.detail.target.scrollIntoView({ block: "nearest" })
  })
  // A form that was taken is put away: neither its password nor an earlier refusal stays beside what it has brought.
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.elt
    if (!event.detail.successful || !form.matches("details.confirm > form")) return
    for (const refusal of form.querySelectorAll(".refusal")) refusal.replaceChildren()
    form.reset()
    form.parentElement.open = false
  })
  document.addEventListener("htmx:sendError", () => said("The service could not be reached."))

  // The search box: `/` leads to it, results are shown while somebody types, and arrows move through them.
  const search = () => {
    const box = document.getElementById("q")
    if (box === null) return
    const list = document.createElement("ul")
    Object.assign(list, { id: "q-found", className: "q-found", hidden: true })
    list.setAttribute("role", "listbox")
    list.setAttribute("aria-label", "Results")
    box.form.append(list)
    box.setAttribute("role", "combobox")
    box.setAttribute("aria-controls", list.id)
    box.setAttribute("aria-autocomplete", "list")
    box.setAttribute("aria-expanded", "false")
    let [at, timer, asked] = [-1, undefined, undefined]
    const choose = (next) => {
      at = next
      for (const [index, option] of Array.from(list.children).entries()) {
        option.setAttribute("aria-selected", String(index === at))
        if (index === at) option.scrollIntoView({ block: "nearest" })
      }
      if (at < 0) box.removeAttribute("aria-activedescendant")
      else box.setAttribute("aria-activedescendant", list.children[at].id)
    }
    const show = (options) => {
      list.replaceChildren(...options)
      list.hidden = options.length === 0
      box.setAttribute("aria-expanded", String(!list.hidden))
      choose(-1)
    }
    const hide = () => {
      clearTimeout(timer)
      asked?.abort()
      show([])
    }
    const optionOf = (row, index) => {
      const [link, what, profile] = [row.querySelector("a"), ...row.querySelectorAll("td:nth-child(n+2)")]
      const option = document.createElement("li")
      Object.assign(option, { id: `q-found-${index}`, textContent: what.textContent })
      option.setAttribute("role", "option")
      option.dataset.to = link.getAttribute("href")
      const more = document.createElement("small")
      more.textContent = [row.closest("[data-kind]").dataset.kind, profile.textContent].filter(Boolean).join(", ")
      option.append(more)
      return option
    }
    const ask = async (text) => {
      asked?.abort()
      asked = new AbortController()
      const url = `/ui/search?${new URLSearchParams({ q: text, typing: "1" })}`
      try {
        const answer = await fetch(url, {
          headers: { "HX-Request": "true", "X-Panel-Refresh": "1" },
          credentials: "same-origin",
          redirect: "error",
          signal: asked.signal
        })
        if (!answer.ok) return hide()
        const found = new DOMParser().parseFromString(await answer.text(), "text/html")
        show(Array.from(found.querySelectorAll("#found tbody tr")).map(optionOf))
        said(list.children.length === 1 ? "1 result" : `${list.children.length} results`)
      } catch { /* another text is asked for, or the service cannot be reached */ }
    }
    box.addEventListener("input", () => {
      clearTimeout(timer)
      const text = box.value.trim()
      if (text.length < 3) hide()
      else timer = setTimeout(ask, 250, text)
    })
    box.addEventListener("keydown", (event) => {
      const count = list.children.length
      if (event.key === "Escape" && count > 0) hide()
      else if (count > 0 && event.key === "ArrowDown") choose(at + 1 < count ? at + 1 : 0)
      else if (count > 0 && event.key === "ArrowUp") choose(at > 0 ? at - 1 : count - 1)
      else if (event.key === "Enter" && at >= 0) location.assign(list.children[at].dataset.to)
      else return
      event.preventDefault()
    })
    // A press on a result must not take the focus, because the list would be gone before the click.
    list.addEventListener("mousedown", (event) => event.preventDefault())
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[data-to]")
      if (option !== null) location.assign(option.dataset.to)
    })
    box.addEventListener("blur", hide)
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return
      if (document.activeElement?.matches("input, textarea, select, [contenteditable]")) return
      event.preventDefault()
      box.focus()
      box.select()
    })
  }

  // The token of a link is in its fragment, which no browser sends. It goes into the form, and out of the address.
  const takeToken = (form) => {
    const token = location.hash.slice(1)
    if (!/^[\w-]{43}$/.test(token)) return
    history.replaceState(null, "", location.pathname)
    form.elements.token.value = token
    form.requestSubmit()
  }

  for (const name of Object.keys(offered)) show(name)
  const narrow = matchMedia("(max-width: 60rem)")
  const fold = () => {
    for (const pages of document.querySelectorAll(".side-fold")) pages.open = !narrow.matches
    reach(document)
  }
  search()
  fold()
  narrow.addEventListener("change", fold)
  dress(document)
  for (const form of document.querySelectorAll("[data-from-fragment]")) takeToken(form)
})()
