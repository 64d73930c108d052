#include "base/suggest.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(SuggestTest, DistanceCountsEachKindOfEditOnce) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("layers", "layers"), 0);
  EXPECT_EQ(EditDistance("layers", "layer"), 1);    // deletion
  EXPECT_EQ(EditDistance("layers", "layerss"), 1);  // insertion
  EXPECT_EQ(EditDistance("layers", "lavers"), 1);   // substitution
  EXPECT_EQ(EditDistance("layers", "lyaers"), 1);   // swap of neighbours
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);  // k->s, e->i, +g
  EXPECT_EQ(EditDistance("ca", "abc"), 3);          // a swapped pair is not edited again
  EXPECT_EQ(EditDistance("Layers", "LAYERS"), 0);   // case does not count
}

TEST(SuggestTest, NearestWithinAThirdOfTheWordFirstOfEquals) {
  const std::vector<std::string> presets = {"gpt3-175b", "gpt3-175b-megascale", "gpt-1t", "a100", "b100"};
  EXPECT_EQ(Nearest("gpt3-157b", presets), "gpt3-175b");
  EXPECT_EQ(Nearest("c100", presets), "a100");        // a100 and b100 are both one away
  EXPECT_EQ(Nearest("h200", presets), std::nullopt);  // two away; a third of 4 letters is 1
  EXPECT_EQ(Nearest("", presets), std::nullopt);
  EXPECT_EQ(Nearest(std::string(1000, 'a'), presets), std::nullopt);
}

TEST(SuggestTest, DidYouMeanIsReadyToAppend) {
  EXPECT_EQ(DidYouMean("lyers", {"layers"}), " (did you mean 'layers'?)");
  EXPECT_EQ(DidYouMean("vocabulary", {"layers"}), "");
}

}  // namespace
}  // namespace orrery
