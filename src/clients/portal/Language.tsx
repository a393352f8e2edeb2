/** The reader's language: the browser's, until the reader chooses another. */
import { createContext, type ReactNode, useContext, useEffect, useState } from "react"
import type { Refused } from "./Ask.ts"
import { english, type Texts } from "./English.ts"
import { german } from "./German.ts"

const languages = { en: english, de: german } as const
type Language = keyof typeof languages

const storedAs = "licensing.portal.language"

const isKnown = (name: string | null | undefined): name is Language => Object.hasOwn(languages, name ?? "")

const preferred = (): Language => {
  const stored = localStorage.getItem(storedAs)
  if (isKnown(stored)) return stored
  return navigator.languages.map((each) => each.slice(0, 2)).find(isKnown) ?? "en"
}

interface Words {
  readonly language: Language
  readonly texts: Texts
  /** Chooses a language for good. */
  readonly choose: (language: Language) => void
}

const Chosen = createContext<Words>({ language: "en", texts: english, choose: () => undefined })

export const Languages = ({ children }: { readonly children: ReactNode }) => {
  const [language, setLanguage] = useState(preferred)
  useEffect(() => {
    document.documentElement.lang = language
  }, [language])
  const choose = (chosen: Language) => {
    localStorage.setItem(storedAs, chosen)
    setLanguage(chosen)
  }
  return <Chosen value={{ language, texts: languages[language], choose }}>{children}</Chosen>
}

export const useWords = () => useContext(Chosen)
export const useTexts = () => useContext(Chosen).texts

export const LanguageChoice = () => {
  const { choose, language, texts } = useWords()
  return (
    <select
      aria-label={texts.switchLanguage}
      value={language}
      onChange={({ target }) => isKnown(target.value) && choose(target.value)}
    >
      {Object.entries(languages).map(([name, words]) => (
        <option key={name} value={name}>
          {words.language}
        </option>
      ))}
    </select>
  )
}

/** Days, instants and numbers in the reader's language and zone. */
export const useFormats = () => {
  const { language } = useWords()
  // The browser's own variant of the language: days differ between English and American.
  const locale = navigator.languages.find((each) => each.startsWith(language)) ?? language
  const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium" })
  const instant = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" })
  const number = new Intl.NumberFormat(locale)
  return {
    day: (text: string) => day.format(new Date(text)),
    instant: (text: string) => instant.format(new Date(text)),
    number: (count: number) => number.format(count)
  }
}

export const sentenceOf = (texts: Texts, { code, retryAfterSeconds = 60 }: Refused): string => {
  const sentences: { readonly [code: string]: string | ((seconds: number) => string) } = texts.refused
  const sentence = sentences[code] ?? texts.refused.general
  return typeof sentence === "string" ? sentence : sentence(retryAfterSeconds)
}
