"""Accuracy against tokens of thought, one line a family, as SVG without any library."""

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 56, 44, 20, 130
COLOURS = {"budget": "#777777", "ABF": "#1f6feb", "ABF + CGRS": "#d1495b", "CGRS that closes": "#8250df", "modes": "#2a9d5c"}


def curve_svg(lines):
    most = max(line["thought_tokens"] for line in lines) * 1.05

    def x(tokens):
        return LEFT + (WIDTH - LEFT - RIGHT) * tokens / most

    def y(accuracy):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - accuracy / 100)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for accuracy in range(0, 101, 20):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(accuracy):.1f}" y2="{y(accuracy):.1f}" '
                   f'stroke="#dddddd"/><text x="{LEFT - 6}" y="{y(accuracy) + 4:.1f}" text-anchor="end">'
                   f'{accuracy} %</text>')
    step = max(1, round(most / 6 / 5) * 5) or 5
    for tokens in range(0, int(most) + 1, step):
        out.append(f'<text x="{x(tokens):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tokens}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">'
               f'mean tokens of thought</text>')
    for n, (family, colour) in enumerate(COLOURS.items()):
        points = sorted((line["thought_tokens"], line["accuracy"]) for line in lines if line["family"] == family)
        if not points:
            continue
        path = " ".join(f"{x(t):.1f},{y(a):.1f}" for t, a in points)
        if family != "modes":
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for t, a in points:
            out.append(f'<circle cx="{x(t):.1f}" cy="{y(a):.1f}" r="3.5" fill="{colour}"/>')
        out.append(f'<circle cx="{WIDTH - RIGHT + 14}" cy="{TOP + 8 + 20 * n}" r="4" fill="{colour}"/>'
                   f'<text x="{WIDTH - RIGHT + 24}" y="{TOP + 12 + 20 * n}">{family}</text>')
    return "\n".join(out) + "\n</svg>\n"
