import { RouterProvider } from "@tanstack/react-router"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { router } from "./Routes.tsx"
import { useSession } from "./service/Hooks.ts"
import { SignIn } from "./shell/SignIn.tsx"

const Console = () => {
  const { holder, number } = useSession()
  return holder === undefined ? <SignIn /> : <RouterProvider key={number} router={router} />
}

createRoot(document.getElementById("console")!).render(
  <StrictMode>
    <Console />
  </StrictMode>
)
