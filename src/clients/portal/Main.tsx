import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { Languages } from "./Language.tsx"
import { Portal } from "./Portal.tsx"

createRoot(document.getElementById("portal")!).render(
  <StrictMode>
    <Languages>
      <Portal />
    </Languages>
  </StrictMode>
)
