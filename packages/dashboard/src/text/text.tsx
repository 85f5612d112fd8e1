import { createContext, useContext, useEffect, useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { en } from './en.ts'
import { translator } from './translate.ts'
import type { Language, Texts, Translate } from './translate.ts'

interface TextContext {
  readonly language: Language
  readonly t: Translate
  readonly choose: (language: Language) => void
}

const STORED = 'impresario.language'
const Context = createContext<TextContext>({ language: 'en', t: translator('en', en), choose: () => {} })

const LOADERS: Readonly<Record<Exclude<Language, 'en'>, () => Promise<Texts>>> = {
  ru: async () => (await import('./ru.ts')).ru,
  es: async () => (await import('./es.ts')).es,
}

export function TextProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const [language, setLanguage] = useState<Language>(chosenLanguage)
  const [loaded, setLoaded] = useState<{ readonly language: Language; readonly texts: Texts } | undefined>(
    language === 'en' ? { language, texts: en } : undefined,
  )
  useEffect(() => {
    document.documentElement.lang = language
    let isCurrent = true
    const load = language === 'en' ? Promise.resolve<Texts>(en) : LOADERS[language]()
    void load.then((texts) => {
      if (isCurrent) setLoaded({ language, texts })
    })
    return () => {
      isCurrent = false
    }
  }, [language])
  const value = useMemo<TextContext | undefined>(
    () =>
      loaded === undefined
        ? undefined
        : {
            language: loaded.language,
            t: translator(loaded.language, loaded.texts),
            choose: (next) => {
              localStorage.setItem(STORED, next)
              setLanguage(next)
            },
          },
    [loaded],
  )
  return value === undefined ? null : <Context.Provider value={value}>{children}</Context.Provider>
}

export function useText(): TextContext {
  return useContext(Context)
}

function chosenLanguage(): Language {
  const wanted = [localStorage.getItem(STORED), ...navigator.languages]
  for (const one of wanted) {
    const short = one?.slice(0, 2).toLowerCase()
    if (short === 'en' || short === 'ru' || short === 'es') return short
  }
  return 'en'
}
