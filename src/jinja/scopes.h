// scopes.h  Decides, before a template runs, which scope owns each variable.
//
// Jinja binds names at compile time, and templates depend on the details: `set` in a loop makes a variable of that
// iteration which starts with the outer value (alias); a name set in only some branches of an `if` falls back to the
// outer variable or the render context (resolve); a name set before it is ever read starts undefined.
#pragma once

#include "base/result.h"
#include "jinja/ast.h"

namespace chimere::jinja {

// Fills every ScopePlan of the program. Also rejects unknown filters and tests, except below an `if` or a conditional
// expression, where Jinja leaves that error to the moment of use.
Status plan_scopes(Program& program);

}  // namespace chimere::jinja
