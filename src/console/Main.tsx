import { RouterProvider } from "@tanstack/react-router"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { router } from "./Routes.tsx"
import { useAtom } from "./service/Hooks.ts"
import { session } from "./service/Session.ts"
import { SignIn } from "./shell/SignIn.tsx"

const Console = () => (useAtom(session).holder === undefined ? <SignIn /> : <RouterProvider router={router} />)

createRoot(document.getElementById("console")!).render(
  <StrictMode>
    <Console />
  </StrictMode>
)
