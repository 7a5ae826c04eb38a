/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-RMPDWLYV.js";import"./chunk-4WKM777Y.js";import"./chunk-EFAEV7HH.js";import"./chunk-OYKWIZ2M.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
