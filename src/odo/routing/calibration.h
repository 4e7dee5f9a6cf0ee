// calibration.h  How sure each stage is, as tools/routing/fit.py found it on the development questions, none of which is
// among those that docs/odo-routing.md reports.
#pragma once

namespace chimere::odo {

// The share of right choices where a route has one rule more than the next one, or several. Below what was found (0.98
// and 0.99), as words were added with those questions in sight.
inline constexpr double kOneRuleRight = 0.95;
inline constexpr double kMoreRulesRight = 0.98;
// A file of a type that a route asks for. The development questions have no files: an estimate.
inline constexpr double kAttachmentRight = 0.9;

// Logits of the words of examples, alone and with the cosine of vectors beside them. Where no rule knew a question,
// it is likelier to be for none of the routes: the bias of the fallback.
inline constexpr double kWordsTemperature = 0.42;
inline constexpr double kWordsFallbackBias = 0.6;
inline constexpr double kCosineWeight = 1.5;
inline constexpr double kBothTemperature = 0.46;
inline constexpr double kBothFallbackBias = 0.8;
inline constexpr double kCosineTemperature = 0.21;  // of cosines alone

// Words that are as sure as this decide before vectors are computed.
inline constexpr double kSureByWords = 0.9;
// A stage below this is not sure, and the next one is asked.
inline constexpr double kSureEnough = 0.5;

}  // namespace chimere::odo
