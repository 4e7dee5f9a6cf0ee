// jinja_test.cpp  Input marks, limits and error messages of the template engine.
#include <gtest/gtest.h>

#include "jinja/json.h"
#include "jinja/template.h"

namespace chimere::jinja {
namespace {

std::tm epoch() { return std::tm{}; }

Limits tight() {
  Limits limits;
  limits.max_output_bytes = 1 << 20;
  limits.max_value_bytes = 1 << 20;
  limits.max_live_bytes = 8 << 20;
  limits.max_steps = 2'000'000;
  return limits;
}

Result<Rendered> render(std::string_view source, std::string_view variables = "{}", const Limits& limits = tight()) {
  TRY_ASSIGN(const Template parsed, Template::parse(source));
  TRY_ASSIGN(Value globals, value_from_json(variables, true));
  return parsed.render(globals, limits, epoch);
}

// The output with input spans in brackets.
std::string marked(std::string_view source, std::string_view variables) {
  const Result<Rendered> rendered = render(source, variables);
  if (!rendered) return "error: " + rendered.error().message;
  std::string out;
  for (const Span& span : rendered->spans) {
    const std::string text = rendered->text.substr(span.begin, span.end - span.begin);
    out += span.is_input ? "[" + text + "]" : text;
  }
  return out;
}

TEST(JinjaMarks, LiteralAndInputStayApart) {
  EXPECT_EQ(marked("<|im_start|>{{ role }}\n{{ x }}<|im_end|>", R"({"role": "user", "x": "Hi"})"),
            "<|im_start|>[user]\n[Hi]<|im_end|>");
  EXPECT_EQ(marked("{{ '<|im_start|>' + role + '\\n' ~ x }}", R"({"role": "user", "x": "Hi"})"),
            "<|im_start|>[user]\n[Hi]");
  EXPECT_EQ(marked("{{ '' }}{{ x }}{{ y }}", R"({"x": "a", "y": "b"})"), "[ab]");
}

TEST(JinjaMarks, SurviveStringOperations) {
  const char* v = R"({"x": " ab<s>cd ", "l": ["p", "q"], "d": {"k": "v"}, "n": 5})";
  EXPECT_EQ(marked("{{ ('<' + x + '>')|trim }}", v), "<[ ab<s>cd ]>");
  EXPECT_EQ(marked("{{ (x ~ '.')[1:4] ~ (x ~ '.')[-3:] }}", v), "[ab<d ].");
  EXPECT_EQ(marked("{{ ('A' ~ x.strip() ~ 'B')[::-1] }}", v), "B[dc>s<ba]A");
  EXPECT_EQ(marked("{{ x|replace('<s>', '<|eot|>') }}", v), "[ ab]<|eot|>[cd ]");
  EXPECT_EQ(marked("{{ '<s>'|replace('s', x) }}", v), "<[ ab<s>cd ]>");
  EXPECT_EQ(marked("{{ ('a,' ~ x ~ ',b').split(',')|join('|') }}", v), "a|[ ab<s>cd ]|b");
  EXPECT_EQ(marked("{{ l|join('<sep>') }}", v), "[p]<sep>[q]");
  EXPECT_EQ(marked("{{ x.upper() }}{{ ('t' ~ x)|title }}", v), "[ AB<S>CD ]T[ Ab<S>cd ]");
  EXPECT_EQ(marked("{{ '<%s>' % x }}{{ '<{}>'.format(x) }}{{ '%s:%d'|format(x, n) }}", v),
            "<[ ab<s>cd ]><[ ab<s>cd ]>[ ab<s>cd ]:5");
  EXPECT_EQ(marked("{% macro m(a) %}<m>{{ a }}</m>{% endmacro %}{{ m(x)|trim }}", v), "<m>[ ab<s>cd ]</m>");
  EXPECT_EQ(marked("{% set b %}<{{ x }}>{% endset %}{{ b * 2 }}", v), "<[ ab<s>cd ]><[ ab<s>cd ]>");
  EXPECT_EQ(marked("{% for c in 'z' ~ l[0] %}{{ c }},{% endfor %}", v), "z,[p],");
  EXPECT_EQ(marked("{% for k, v in d|items %}<{{ k }}={{ v }}>{% endfor %}", v), "<[k]=[v]>");
  EXPECT_EQ(marked("{{ ('a\\n' ~ l[0])|indent(2) }}", v), "a\n  [p]");
  EXPECT_EQ(marked("{{ 'x'.join(l) }}{{ ('-' ~ l[0]).center(6, '*') }}", v), "[p]x[q]**-[p]**");
  EXPECT_EQ(marked("{{ x.partition('<')[1] }}{{ '<'.join(['', '']) }}", v), "[<]<");
  EXPECT_EQ(marked("{{ (x|safe) + '<' }}{{ (x|trim)|e }}", v), "[ ab<s>cd ]&lt;[ab&lt;s&gt;cd]");
}

TEST(JinjaMarks, JsonIsInputWhenAnyPartIs) {
  EXPECT_EQ(marked("{{ {'a': x}|tojson }}", R"({"x": "<s>"})"), R"([{"a": "<s>"}])");
  EXPECT_EQ(marked("{{ {'a': '<s>'}|tojson }}", "{}"), R"({"a": "<s>"})");
  EXPECT_EQ(marked("{{ [x] }}", R"({"x": "<s>"})"), "[['<s>']]");
  EXPECT_EQ(marked("{{ d|tojson }}", R"({"d": {"<s>": 1}})"), R"([{"<s>": 1}])");
}

TEST(JinjaMarks, NoLaunderingThroughKeywordsAndFormats) {
  EXPECT_EQ(marked("{% macro m() %}{% for k in kwargs %}{{ k }}{% endfor %}{% endmacro %}{{ m(**d) }}{{ m(k=1) }}",
                   R"({"d": {"<s>": 1}})"),
            "[<s>]k");
  EXPECT_EQ(marked("{{ dict(**d)|list|join }}", R"({"d": {"<s>": 1}})"), "[<s>]");
  EXPECT_EQ(marked("{{ f.format('a') }}", R"({"f": "<{:<>2}"})"), "[<<]a");
  EXPECT_EQ(marked("{{ f % 'a' }}", R"({"f": "<%s>"})"), "[<]a[>]");
}

TEST(JinjaMarks, TrustedVariablesAreLiteral) {
  const Result<Template> parsed = Template::parse("{{ bos }}{{ x }}");
  ASSERT_TRUE(parsed);
  const Value globals = Value::dict({{Value::string("bos", false), Value::string("<s>", false)},
                                     {Value::string("x", false), Value::string("<s>", true)}});
  const Result<Rendered> rendered = parsed->render(globals, Limits{}, epoch);
  ASSERT_TRUE(rendered);
  EXPECT_EQ(rendered->spans, (std::vector<Span>{{0, 3, false}, {3, 6, true}}));
}

// A template out of a model file must not be able to do harm.
TEST(JinjaHostile, RunsIntoLimits) {
  const char* kTemplates[] = {
      "{{ 'a' * 1000000000 }}",
      "{{ 'a' * 10**18 }}",
      "{{ [0] * 1000000000 }}",
      "{{ 10 ** 100000000 }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ -9223372036854775807 - 2 }}",
      "{{ range(10**12) }}",
      "{{ range(-9223372036854775807, 9223372036854775807) }}",
      "{{ 'a'.center(1000000000) }}{{ 'a'.ljust(10**18) }}",
      "{{ 'a'.zfill(10**15) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '%.1000000000f' % 1 }}",
      "{{ '{:1000000000}'.format(1) }}",
      "{{ 'x\\ny'|indent(1000000000) }}",
      "{{ [[1]]|tojson(indent=1000000000) }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(x) %}{{ m(x + 1) ~ 'a' }}{% endmacro %}{{ m(0) }}",
      "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
      "{% for i in range(100000) %}xxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}",
      "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
      "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(50) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(50) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson "
      "}}",
      ("{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(50) %}"
       "{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}"),
      "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
      "{{ ('a' * 1000000).replace('', 'bbbbbbbb') }}",
      "{{ ('a' * 1000000)|replace('a', 'b' * 100000) }}",
      "{{ ('a,' * 400000).split(',') }}",
      "{{ ('a' * 900000)|list|length }}",
      "{% for i in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
      "{{ strftime_now('%c' * 10000) }}",
  };
  for (const char* source : kTemplates) {
    const Result<Rendered> rendered = render(source);
    ASSERT_FALSE(rendered) << source;
    EXPECT_NE(rendered.error().message.find("line 1"), std::string::npos) << rendered.error().message;
  }
}

std::string repeat(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

TEST(JinjaHostile, DeepNestingIsAnError) {
  const int n = 20'000;
  const std::string templates[] = {
      "{{ " + repeat("(", n) + "1" + repeat(")", n) + " }}",
      "{{ " + repeat("[", n) + repeat("]", n) + " }}",
      "{{ " + repeat("-", n) + "1 }}",
      "{{ " + repeat("not ", n) + "1 }}",
      "{{ 1" + repeat("+1", n) + " }}",
      "{{ a" + repeat(".a", n) + " }}",
      "{{ a" + repeat("|e", n) + " }}",
      "{{ a" + repeat("()", n) + " }}",
      "{{ 1" + repeat(" if 1 else 1", n) + " }}",
      "{{ 1" + repeat(" if 1", n) + " }}",
      "{{ 1" + repeat(" and 1", n) + " }}",
      "{{ 1" + repeat(" ** 1", n) + " }}",
      repeat("{% if 1 %}", n) + repeat("{% endif %}", n),
      repeat("{% for i in x %}", n),
      "{% set " + repeat("(", n) + "a" + repeat(")", n) + " = 1 %}",
  };
  for (const std::string& source : templates) {
    const Result<Template> parsed = Template::parse(source);
    ASSERT_FALSE(parsed) << source.substr(0, 40);
    EXPECT_NE(parsed.error().message.find("line 1"), std::string::npos) << parsed.error().message;
  }
}

TEST(JinjaHostile, CyclesAndLongChainsAreFreed) {
  const char* kTemplates[] = {
      "{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.l = [ns] %}",
      "{% macro m() %}{% endmacro %}{% set ns = namespace(m=m) %}{% set k = ns %}",
      ("{% set h = namespace() %}{% set h.cur = namespace() %}{% for i in range(20000) %}{% set old = h.cur %}"
       "{% set new = namespace() %}{% set old.x = new %}{% set h.cur = new %}{% endfor %}"),
      "{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}{% set q = loop %}{% endfor %}",
  };
  for (const char* source : kTemplates) EXPECT_TRUE(render(source)) << source;
}

TEST(JinjaHostile, LargeTemplatesAndManyNamesAreFast) {
  std::string source;
  for (int i = 0; i < 8000; ++i) {
    const std::string name = "v" + std::to_string(i);
    source += "{% if " + name + " %}{% set " + name + " = 1 %}{% endif %}";
  }
  EXPECT_TRUE(render(source));
  EXPECT_FALSE(Template::parse(std::string((1 << 20) + 1, 'x')));
  EXPECT_FALSE(Template::parse("\xff\xfe"));
}

TEST(JinjaHostile, InputNestedTooDeepIsAnError) {
  EXPECT_FALSE(value_from_json(repeat("[", 1000) + repeat("]", 1000), true));
  EXPECT_FALSE(value_from_json("{\"a\": ", true));
  EXPECT_FALSE(value_from_json("", true));
}

TEST(JinjaErrors, NameTheLineAndTheReason) {
  const Result<Rendered> rendered = render("a\nb\n{{ x.y.z }}", R"({"x": {}})");
  ASSERT_FALSE(rendered);
  EXPECT_EQ(rendered.error().message, "chat template, line 3: 'dict object' has no attribute 'y'");
  const Result<Template> parsed = Template::parse("\n{% if x %}\n{% endfor %}");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "chat template, line 3: unknown tag 'endfor'");
}

TEST(JinjaErrors, SayThatANameWasLeftOut) {
  for (const char* source :
       {"{{ 'a'|truncate(3) }}", "{{ 1 is sameas 1 }}", "{{ 'a'.swapcase() }}", "{{ cycler(1) }}"}) {
    const Result<Rendered> rendered = render(source);
    ASSERT_FALSE(rendered) << source;
    EXPECT_NE(rendered.error().message.find("was left out"), std::string::npos) << rendered.error().message;
  }
}

}  // namespace
}  // namespace chimere::jinja
