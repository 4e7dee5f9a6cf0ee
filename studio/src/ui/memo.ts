// memo.ts  A component that renders again only when a property changed.
import { Component, h, type FunctionComponent } from 'preact'

export function memo<P extends object>(inner: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P) {
      const now = this.props as Record<string, unknown>
      return Object.entries(next).some(([key, value]) => now[key] !== value)
    }
    override render() {
      return h(inner, this.props)
    }
  }
  return Memo as unknown as FunctionComponent<P>
}
