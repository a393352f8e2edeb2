/** What the site's search box uses in place of MiniSearch: its index, with the order of Ranking.ts. */
import MiniSearch from "minisearch"
import { ranked } from "../../../scripts/pages/Ranking.ts"

export default {
  loadJSON: (...given: Parameters<typeof MiniSearch.loadJSON>) => {
    const index = MiniSearch.loadJSON(...given)
    return { search: (text: string) => ranked(index, text, import.meta.env.BASE_URL) }
  }
}
