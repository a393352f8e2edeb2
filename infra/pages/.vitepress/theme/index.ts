/** The standard theme with the fonts of the system, and the forms of the reference. */
import Theme from "vitepress/theme-without-fonts"
import { onMounted } from "vue"
import "../../../../src/edge/documents/reference/Reference.css"

export default {
  extends: Theme,
  setup: () => onMounted(() => void import("../../../../src/edge/documents/reference/TryIt.js"))
}
