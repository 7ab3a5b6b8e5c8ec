// The script of the documents: the theme, the navigation on narrow screens, and the search.
import MiniSearch from "minisearch"
import { found, options } from "./Search.ts"

const root = new URL(".", document.currentScript.src)

const said = (text) => {
  document.getElementById("said").textContent = text
}

// What the reader has chosen. Where nothing can be stored, a choice lasts as long as the page.
let chosen = "system"
const themes = ["system", "light", "dark"]
const stored = () => {
  try {
    return localStorage.getItem("theme") ?? chosen
  } catch {
    return chosen
  }
}
const wear = (theme) => {
  if (theme === "system") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  for (const name of document.querySelectorAll("[data-theme-name]")) name.textContent = theme
}
const changeTheme = () => {
  chosen = themes[(themes.indexOf(stored()) + 1) % themes.length]
  try {
    localStorage.setItem("theme", chosen)
  } catch { /* the choice lasts as long as the page */ }
  wear(chosen)
}

// A table or a block that is wider than its place is scrolled by the keyboard too.
const reach = () => {
  for (const box of document.querySelectorAll(".box, .picture, pre")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0
    else box.removeAttribute("tabindex")
  }
}

const narrow = matchMedia("(max-width: 60rem)")
const fold = () => {
  for (const pages of document.querySelectorAll(".side-fold")) pages.open = !narrow.matches
  reach()
}

// The index is a script, because a page that was opened as a file cannot read other files. It is loaded only when
// somebody searches.
let loading
const loadIndex = () =>
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script")
    script.src = new URL("search-index.js", root).href
    script.addEventListener("load", () => done(MiniSearch.loadJS(globalThis.siteIndex, options)))
    script.addEventListener("error", () => {
      // The next search tries again.
      loading = undefined
      failed(new Error("the index is not there"))
    })
    document.head.append(script)
  })

const search = () => {
  const box = document.getElementById("q")
  box.parentElement.hidden = false
  const list = document.createElement("ul")
  Object.assign(list, { id: "q-found", className: "q-found", hidden: true })
  list.setAttribute("role", "listbox")
  list.setAttribute("aria-label", "Results")
  box.parentElement.append(list)
  box.setAttribute("role", "combobox")
  box.setAttribute("aria-controls", list.id)
  box.setAttribute("aria-autocomplete", "list")
  box.setAttribute("aria-expanded", "false")
  const note = document.createElement("p")
  Object.assign(note, { className: "q-found q-note", hidden: true })
  box.parentElement.append(note)
  let at = -1
  const choose = (next) => {
    at = next
    for (const [index, option] of Array.from(list.children).entries()) {
      option.setAttribute("aria-selected", String(index === at))
      if (index === at) option.scrollIntoView({ block: "nearest" })
    }
    if (at < 0) box.removeAttribute("aria-activedescendant")
    else box.setAttribute("aria-activedescendant", list.children[at].id)
  }
  // A note stands in the place of the results.
  const show = (options, text = "") => {
    list.replaceChildren(...options)
    list.hidden = options.length === 0
    note.textContent = text
    note.hidden = text === ""
    box.setAttribute("aria-expanded", String(!list.hidden))
    choose(-1)
  }
  const optionOf = ({ heading, id, page }, index) => {
    const option = document.createElement("li")
    Object.assign(option, { id: `q-found-${index}`, textContent: heading })
    option.setAttribute("role", "option")
    option.dataset.to = new URL(id, root).href
    if (page !== "") {
      const more = document.createElement("small")
      more.textContent = page
      option.append(more)
    }
    return option
  }
  const go = (to) => {
    show([])
    location.assign(to)
  }
  const ask = async () => {
    const text = box.value.trim()
    if (text.length < 2) return show([])
    const index = await loadIndex().catch(() => undefined)
    // Somebody may have typed more in the meantime.
    if (text !== box.value.trim()) return
    if (index === undefined) show([], "The search could not be loaded. Type again to try again.")
    else {
      const options = found(index, text).map(optionOf)
      show(options, options.length === 0 ? "Nothing found" : "")
    }
    said(note.textContent || `${list.children.length} results`)
  }
  // What fails here is said when somebody searches.
  box.addEventListener("focus", () => loadIndex().catch(() => undefined))
  box.addEventListener("input", () => void ask())
  box.addEventListener("keydown", (event) => {
    const count = list.children.length
    if (event.key === "Escape" && count > 0) show([])
    else if (count > 0 && event.key === "ArrowDown") choose(at + 1 < count ? at + 1 : 0)
    else if (count > 0 && event.key === "ArrowUp") choose(at > 0 ? at - 1 : count - 1)
    else if (event.key === "Enter" && count > 0) go(list.children[Math.max(at, 0)].dataset.to)
    else return
    event.preventDefault()
  })
  // A press on a result must not take the focus, because the list would be gone before the click.
  list.addEventListener("mousedown", (event) => event.preventDefault())
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[data-to]")
    if (option !== null) go(option.dataset.to)
  })
  box.addEventListener("blur", () => show([]))
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return
    if (document.activeElement?.matches("input, textarea, select")) return
    event.preventDefault()
    box.focus()
    box.select()
  })
}

wear(stored())
for (const button of document.querySelectorAll("[data-theme-switch]")) {
  button.hidden = false
  button.addEventListener("click", changeTheme)
}
search()
fold()
narrow.addEventListener("change", fold)
addEventListener("resize", reach)
