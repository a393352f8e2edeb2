/** The standard theme with the fonts of the system, and the styles of the reference. */
import Theme from "vitepress/theme-without-fonts"
import "../../../../src/edge/documents/reference/Reference.css"

export default Theme
