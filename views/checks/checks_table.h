#pragma once
#include <string>
#include <vector>

#include "projects/checks/check.h"
#include "views/shared/finding_page.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A row a complaint, and with `all` one for each check that found nothing or could not be made. A row that is about a
/// parameter or a layer selects it; of a document (`subject`) one selects where its complaint is seen.
Table checks_table(const std::vector<projects::CheckResult>& results, bool all, const Subject* subject = nullptr);
/// "3 things found in 21 checks", "nothing found in 14 checks; 7 could not be made".
std::string checks_text(const std::vector<projects::CheckResult>& results);

}  // namespace tenon::views
