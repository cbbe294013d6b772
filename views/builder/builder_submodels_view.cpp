#include "views/builder/builder_model.h"
